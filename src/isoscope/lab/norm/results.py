"""What norms hold: records of final norms, outliers and steps through a norm; their tables."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from isoscope.dataclass import dataclass
from isoscope.display import (
    USUAL,
    Column,
    Field,
    Line,
    Record,
    RecordLayout,
    Results,
    Table,
    TaggedRecord,
    Value,
    count,
    plain,
    short,
    texts,
)

SIGMAS = 3.0  # standard deviations from the mean beyond which a parameter stands out
NAMED = 5  # dimensions that are named in a cell
SHOWN = ("mean-cosine", *USUAL)  # measures of the way through the norm


class NormRecord(TaggedRecord):
    """A result about norms."""

    def _line(self, site: str, name: str, value: Value, variant: str = "") -> Line:
        where = {"what": self.what, "site": site, "variant": variant}
        return {**where, "name": name, "value": value}


@dataclass(frozen=True)
class FinalNorm(NormRecord):
    """Gain and bias of the norm after the last block, and what they would make by themselves.

    r = |bias| / |gain|, and r^2 / (1 + r^2) is the mean cosine of its output if nothing but
    the bias is common to the vectors.
    """

    what: ClassVar[str] = "final-norm"
    site: str  # "norm" with the stack before it
    module: str
    kind: str  # class of the norm
    centred: bool  # whether it subtracts the mean of each row
    width: int
    gain_norm: float
    bias_norm: float | None
    ratio: float | None
    reference: float | None
    gain_outliers: list[int]  # dimensions farther than `sigmas` from the mean of all gains
    bias_outliers: list[int]
    remark: str

    def lines(self) -> list[Line]:
        """Return one line of CSV per field."""
        return [
            self._line(self.site, name, value)
            for name, value in self.to_dict().items()
            if name not in ("what", "site")
        ]


@dataclass(frozen=True)
class NormOutliers(Record):
    """The outlier dimensions of one norm."""

    module: str
    gain: list[int]
    bias: list[int]


@dataclass(frozen=True)
class RoleOutliers(NormRecord):
    """Norms that have the same place in every block, and the dimensions that stand out.

    A dimension is common where its gain, or its bias, stands out in more than half of them.
    """

    what: ClassVar[str] = "outliers"
    stack: str  # the prefix of its sites, or nothing
    role: str  # name within the block, such as "output.LayerNorm"
    layers: int
    width: int
    common_gain: dict[int, int]  # dimension: in how many layers
    common_bias: dict[int, int]
    common_both: list[int]  # gain and bias: what Kovaleva disables
    norms: list[NormOutliers]

    def lines(self) -> list[Line]:
        """Return two lines of CSV per norm: outliers of its gain and of its bias."""
        return [
            self._line(each.module, name, value)
            for each in self.norms
            for name, value in (("gain", each.gain), ("bias", each.bias))
        ]


@dataclass(frozen=True)
class NormStep(Record):
    """One measure on its way through the norm; None where the run has no such reading."""

    measure: str
    before: float | None  # norm.in
    between: float | None  # norm.mid: normalised, neither gain nor bias
    after: float | None  # norm.out


@dataclass(frozen=True)
class Gained(Record):
    """Mean cosine in the middle of the norm, with its own gain and bias.

    The four means are over all pairs of the rows of the sample, so that they differ by
    nothing but the step. `zero_mean` is what the bias alone would give: |b|^2 over
    |b|^2 + sum of gain^2 times mean square, from all rows; it is r^2 / (1 + r^2) where
    every dimension has mean square one.
    """

    n: int  # rows of the sample
    normalised: float
    gain: float
    gain_and_bias: float
    centred_gain_and_bias: float  # without their mean, and so without its energy
    zero_mean: float | None  # None where there is no bias


@dataclass(frozen=True)
class NormSteps(NormRecord):
    """The final norm of one stack in one variant of its rows."""

    what: ClassVar[str] = "steps"
    site: str
    variant: str
    steps: list[NormStep]
    reference: float | None
    gained: Gained | None = None

    def __getitem__(self, measure: str) -> NormStep:
        return {step.measure: step for step in self.steps}[measure]

    def lines(self) -> list[Line]:
        """Return one line of CSV per measure and stage, and per mean cosine."""
        values: Line = {
            f"{step.measure} {when}": value
            for step in self.steps
            for when, value in step.to_dict().items()
            if when != "measure"
        }
        if self.gained is not None:
            values |= {f"gained {key}": each for key, each in self.gained.to_dict().items()}
        return [self._line(self.site, *pair, self.variant) for pair in values.items()]


Norm = FinalNorm | RoleOutliers | NormSteps


def norm_tables(
    norms: Results[Norm], measures: Sequence[str] = (), sigmas: float = SIGMAS
) -> tuple[Table, ...]:
    """One table per kind of record, and two for each variant of a run.

    Without `measures`, the table of the run has all of them.
    """
    final = [each for each in norms if isinstance(each, FinalNorm)]
    roles = [each for each in norms if isinstance(each, RoleOutliers)]
    left_out = tuple(map(plain, norms.left_out))
    found: list[Table] = []
    if final:
        found.append(final_table(str(norms.shared["model"]), final, left_out))
    if final or roles:
        found.append(outlier_table(final, roles, sigmas, () if final else left_out))
    for each in norms:
        if isinstance(each, NormSteps):
            found.append(step_table(each, measures))
            found += [gain_table(each, each.gained)] if each.gained is not None else []
    return tuple(found)


def _lines(norms: Results[Norm]) -> list[Line]:
    return [norms.shared | line for each in norms for line in each.lines()]


def _frame_line(line: Line) -> Line:
    """Return a line whose value is a number or missing; any other value is text, as JSON."""
    value = line["value"]
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return line | {"text": None}
    text = value if isinstance(value, str) else json.dumps(value)
    return line | {"value": None, "text": text}


_KEYS = texts("model", "what", "site", "variant", "name")
NORMS = RecordLayout(
    name="norms",
    tables=norm_tables,
    to_dict=NormRecord.to_dict,
    fields=(*_KEYS, Field("value", "json")),
    lines=_lines,
    typed=(*_KEYS, Field("value", "number"), Field("text")),
    frame_line=_frame_line,
)


def final_table(
    model: str, norms: Sequence[FinalNorm], left_out: tuple[str, ...] = ()
) -> Table:
    """Lay out the final norms, one line each."""
    columns = (
        Column("site", tuple(plain(each.site) for each in norms), words=True, fold=12),
        Column("norm", tuple(plain(each.module) for each in norms), words=True, fold=16),
        Column("kind", tuple(plain(each.kind) for each in norms), words=True),
        Column("|gain|", tuple(short(each.gain_norm) for each in norms)),
        Column("|bias|", tuple(_or_dash(each.bias_norm) for each in norms)),
        Column("r", tuple(_or_dash(each.ratio) for each in norms)),
        Column("r²/(1+r²)", tuple(_or_dash(each.reference) for each in norms)),
        Column("d", tuple(count(each.width) for each in norms)),
    )
    remarks = tuple(dict.fromkeys(plain(each.remark) for each in norms))
    return Table(f"model {plain(model)}, final norm", columns, remarks, left_out)


def outlier_table(
    final: Sequence[FinalNorm],
    roles: Sequence[RoleOutliers],
    sigmas: float,
    left_out: tuple[str, ...] = (),
) -> Table:
    """Lay out the dimensions that stand out, one line per role of norms in a block."""
    lines = [
        (f"{each.stack}{each.role}", each.layers, each.common_gain, each.common_bias)
        for each in roles
    ]
    lines += [
        (f"{each.site} (final)", 1, Counter(each.gain_outliers), Counter(each.bias_outliers))
        for each in final
    ]
    both = ([str(i) for i in gain if i in bias] for _, _, gain, bias in lines)
    columns = (
        Column("norms", tuple(plain(name) for name, *_ in lines), words=True, fold=16),
        Column("layers", tuple(str(layers) for _, layers, *_ in lines)),
        Column("gain", tuple(_names(gain, n) for _, n, gain, _ in lines), words=True, fold=12),
        Column("bias", tuple(_names(bias, n) for _, n, _, bias in lines), words=True, fold=12),
        Column("both", tuple(map(_first, both)), words=True, fold=12),
    )
    caption = f"dimensions beyond {sigmas:g} sigma in more than half of the layers"
    return Table(caption, columns, left_out=left_out)


def step_table(steps: NormSteps, measures: Sequence[str] = ()) -> Table:
    """Lay out readings before, between and after a norm, and what each step adds."""
    have = {step.measure: step for step in steps.steps}
    names = measures or [name for name in SHOWN if name in have] or list(have)
    lines = [have[name] for name in names if name in have]
    columns = (
        Column("measure", tuple(plain(each.measure) for each in lines), words=True),
        Column("before", tuple(_or_dash(each.before) for each in lines)),
        Column("between", tuple(_or_dash(each.between) for each in lines)),
        Column("after", tuple(_or_dash(each.after) for each in lines)),
        Column("normalising", tuple(_change(e.before, e.between) for e in lines)),
        Column("gain, bias", tuple(_change(e.between, e.after) for e in lines)),
    )
    named = f"{plain(steps.site)}, variant {steps.variant}"
    return Table(f"{named}: readings of the run, and what each step adds", columns)


def gain_table(steps: NormSteps, gained: Gained) -> Table:
    """Lay out what gain and bias make of the mean cosine, one after the other."""
    values: list[tuple[str, float | None]] = [
        ("normalised", gained.normalised),
        ("times the gain", gained.gain),
        ("plus the bias", gained.gain_and_bias),
    ]
    adds = ["", *(_change(a, b) for (_, a), (_, b) in pairwise(values))]
    if gained.zero_mean is None:  # there is no bias to be added
        values, adds = values[:2], adds[:2]
    else:
        values += [
            ("plus the bias, rows centred first", gained.centred_gain_and_bias),
            ("bias alone, with the spread of these rows", gained.zero_mean),
            ("bias alone, r²/(1+r²)", steps.reference),
        ]
        adds += [""] * (len(values) - len(adds))
    columns = (
        Column("step", tuple(words for words, _ in values), words=True),
        Column("mean cosine", tuple(_or_dash(value) for _, value in values)),
        Column("adds", tuple(adds)),
    )
    named = f"{plain(steps.site)}, variant {steps.variant}: gain and bias on"
    return Table(f"{named} {count(gained.n)} normalised rows", columns)


def _or_dash(value: float | None) -> str:
    return short(value) or "–"


def _change(one: float | None, other: float | None) -> str:
    return "" if one is None or other is None else f"{other - one:+.3g}"


def _names(common: dict[int, int], layers: int) -> str:
    """Name dimensions, with the number of layers where it is not all of them."""
    return _first([f"{i}" if n == layers else f"{i} ({n})" for i, n in common.items()])


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more or "–"
