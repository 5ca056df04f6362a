"""Tables of norms: gain and bias, outlying parameters, the way through the final norm."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from isoscope.display.escape import plain
from isoscope.display.number import count, short
from isoscope.display.readings import USUAL
from isoscope.display.table import Column, Table

SEVERAL = 5  # dimensions that are named in a cell
SHOWN = ("mean-cosine", *USUAL)  # measures of the way through the norm
_STEPS = (
    ("normalised", "normalised"),
    ("gain", "times the gain"),
    ("gain_and_bias", "plus the bias"),
)


def final_table(model: str, norms: Sequence[Any], left_out: Sequence[str] = ()) -> Table:
    """Lay out the final norms: a line each."""
    columns = (
        Column("site", tuple(plain(each.site) for each in norms), words=True, fold=12),
        Column("norm", tuple(plain(each.module) for each in norms), words=True, fold=16),
        Column("kind", tuple(plain(each.kind) for each in norms), words=True),
        Column("|gain|", tuple(short(each.gain_norm) for each in norms)),
        Column("|bias|", tuple(_or_none(each.bias_norm) for each in norms)),
        Column("r", tuple(_or_none(each.ratio) for each in norms)),
        Column("r²/(1+r²)", tuple(_or_none(each.reference) for each in norms)),
        Column("d", tuple(count(each.width) for each in norms)),
    )
    remarks = tuple(dict.fromkeys(plain(each.remark) for each in norms))
    caption = f"model {plain(model)}, final norm"
    return Table(caption, columns, remarks, tuple(map(plain, left_out)))


def outlier_table(
    final: Sequence[Any], roles: Sequence[Any], sigmas: float, left_out: Sequence[str] = ()
) -> Table:
    """Lay out the dimensions that stand out: a line for the norms of one place in a block."""
    lines = [
        (f"{each.stack}{each.role}", each.layers, each.common_gain, each.common_bias)
        for each in roles
    ]
    lines += [
        (f"{each.site} (final)", 1, Counter(each.gain_outliers), Counter(each.bias_outliers))
        for each in final
    ]
    both = ([i for i in gain if i in bias] for _, _, gain, bias in lines)
    columns = (
        Column("norms", tuple(plain(name) for name, *_ in lines), words=True, fold=16),
        Column("layers", tuple(str(layers) for _, layers, *_ in lines)),
        Column("gain", tuple(_named(gain, n) for _, n, gain, _ in lines), words=True, fold=12),
        Column("bias", tuple(_named(bias, n) for _, n, _, bias in lines), words=True, fold=12),
        Column(
            "both", tuple(_listed([str(i) for i in each]) for each in both), words=True, fold=12
        ),
    )
    caption = f"dimensions beyond {sigmas:g} sigma in more than half of the layers"
    return Table(caption, columns, left_out=tuple(map(plain, left_out)))


def step_table(steps: Any, measures: Sequence[str] = ()) -> Table:
    """Lay out readings before, between and after a norm, and what each step adds."""
    have = {step.measure: step for step in steps.steps}
    names = measures or [name for name in SHOWN if name in have] or list(have)
    lines = [have[name] for name in names if name in have]
    columns = (
        Column("measure", tuple(plain(each.measure) for each in lines), words=True),
        Column("before", tuple(_or_none(each.before) for each in lines)),
        Column("between", tuple(_or_none(each.between) for each in lines)),
        Column("after", tuple(_or_none(each.after) for each in lines)),
        Column("normalising", tuple(_added(e.before, e.between) for e in lines)),
        Column("gain, bias", tuple(_added(e.between, e.after) for e in lines)),
    )
    named = f"{plain(steps.site)}, variant {steps.variant}"
    return Table(f"{named}: readings of the run, and what each step adds", columns)


def gain_table(steps: Any) -> Table:
    """Lay out what gain and bias make of the mean cosine, one after the other."""
    told = steps.gained
    values = [(words, getattr(told, name)) for name, words in _STEPS]
    adds = ["", *(_added(a, b) for (_, a), (_, b) in pairwise(values))]
    if told.zero_mean is None:  # there is no bias to be added
        values, adds = values[:2], adds[:2]
    else:
        values += [
            ("plus the bias, rows centred first", told.centred_gain_and_bias),
            ("bias alone, with the spread of these rows", told.zero_mean),
            ("bias alone, r²/(1+r²)", steps.reference),
        ]
        adds += [""] * (len(values) - len(adds))
    columns = (
        Column("step", tuple(words for words, _ in values), words=True),
        Column("mean cosine", tuple(_or_none(value) for _, value in values)),
        Column("adds", tuple(adds)),
    )
    named = f"{plain(steps.site)}, variant {steps.variant}: gain and bias on"
    return Table(f"{named} {count(told.n)} normalised rows", columns)


def _or_none(value: float | None) -> str:
    return short(value) or "–"


def _added(one: float | None, other: float | None) -> str:
    return "" if one is None or other is None else f"{other - one:+.3g}"


def _named(common: dict[int, int], layers: int) -> str:
    """Name dimensions, with the number of layers where it is not all of them."""
    return _listed([f"{i}" if n == layers else f"{i} ({n})" for i, n in common.items()])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SEVERAL} more" if len(names) > SEVERAL else ""
    return ", ".join(names[:SEVERAL]) + more or "–"
