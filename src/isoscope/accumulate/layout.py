"""What the arrays of a state look like, kind by kind: checked before a file is trusted.

A run folder may come from anyone, and its checksums with it. Here it is made sure that sizes
fit together before memory is taken for them, and that no number is NaN, infinite or larger
than sums of rows can be; what such arrays are turned into is then finite or refused.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from isoscope.accumulate.gradients import PARTS, PIECE_SHARES
from isoscope.accumulate.heads import SHARES, STATISTICS
from isoscope.accumulate.row_bands import POSITIONS
from isoscope.types import Array

WIDEST = 1 << 20
TYPES = ("float64", "float32", "uint64", "int64", "uint8")  # that states are saved in
LONGEST = 1e70  # of rows that are summed; see `study.lanes`
_MOST = 2**53  # rows, documents and the like
# Each array: the kinds of its dtype, its axes (d is the width, t the size of a triangle, other
# letters are the same number throughout a state), and rules, which `_check_values` knows.
_COUNT = ("iu", "", "+")
_CELLS = {
    "keys": ("u", "k", "sorted"),
    "folded": ("u", "", "bool"),
    "documents": _COUNT,
}
_DIRECTIONS = {
    **_CELLS,
    "energy": ("f", "d", "+"),
    "nonzero": ("f", "k", "+"),
    "units": ("f", "kd", ""),
    "own": ("f", "k", ""),
    "pairs": ("f", "k", ""),
}
_MEANS = {**_CELLS, "rows": ("f", "k", "+ total"), "mean": ("f", "kd", "1")}
_BY_SHARE = {
    "share_rows": ("f", "s", "+ total"),
    "share_mean": ("f", "sd", "1"),
    "scatter": ("f", "st", "2"),
}
_HEAD_VECTORS = {
    **_MEANS,
    "nonzero": ("f", "k", "+"),
    "units": ("f", "kd", ""),
    **_BY_SHARE,
}
_GRADIENTS = {
    **_CELLS,
    "basis": ("f", "dq", "unit"),
    "seed": _COUNT,
    "counted": ("u", "", "bool"),
    "sums": ("f", "khc", "2 +"),
    **_BY_SHARE,
}
LAYOUTS: dict[str, dict[str, tuple[str, str, str]]] = {
    "Tally": {
        "documents": ("i", "", ""),
        "pairs": ("f", "", ""),
        "zeros": _COUNT,
        "skipped": _COUNT,
        "independent": ("u", "", "bool"),
        "sample": ("u", "k", "sorted"),
    },
    "Moments": {
        "rows": ("f", "2", "+ total"),
        "mean": ("f", "2d", "1"),
        "scatter": ("f", "2t", "2"),
        "cubic": ("f", "2d", "3"),
        "quartic": ("f", "2", "4"),
        "documents": ("i", "", ""),
        "independent": ("u", "", "bool"),
    },
    "Groups": {
        **_CELLS,
        "rows": ("f", "k", "+ total"),
        "mean": ("f", "kd", "1"),
        "trace": ("f", "k", "2"),
        "sketch": ("f", "krd", "2"),
        "own": ("f", "k", "2 pairs unknown"),
        "pairs": ("f", "k", "unknown"),
    },
    "Directions": _DIRECTIONS,
    "CentredDirections": {**_DIRECTIONS, "centre": ("f", "d", "1")},
    "Norms": {
        **_CELLS,
        "bins": ("i", "b", "sorted bins"),
        "counts": ("f", "b", "+"),
        "zeros": _COUNT,
        "sizes": ("f", "k", "+ total"),
        "mean": ("f", "k", "1 +"),
        "spread": ("f", "k", "2"),
    },
    "Reservoir": {
        "size": _COUNT,
        "hashes": ("u", "m", ""),
        "documents": ("u", "m", ""),
        "positions": ("u", "m", ""),
        "rows": ("f", "md", "1"),
        "independent": ("u", "", "bool"),
    },
    "Copies": {"hashes": ("u", "m", "sorted"), "times": ("i", "m", "+ some")},
    "Partitions": {
        **_CELLS,
        "axes": ("f", "dd", "unit"),
        "sizes": ("f", "k", "+ total"),
        "plus": ("f", "kd", "1"),
        "minus": ("f", "kd", "1"),
    },
    "Vocabulary": {
        "sizes": ("i", "3", "+"),
        "hashes": ("u", "m", "sorted"),
        "tokens": ("i", "m", ""),
        "nonzero": ("f", "m", "+"),
        "units": ("f", "md", ""),
        "owners": ("u", "o", ""),
        "draws": ("u", "o", ""),
        "rows": ("f", "od", "1"),
    },
    "Sentences": {**_CELLS, "likeness": ("f", "k", ""), "sentences": ("f", "k", "+")},
    "BandCells": {
        **_CELLS,
        "counted": ("u", "", "bool"),
        "nonzero": ("f", "kfp", "+"),
        "units": ("f", "kfpd", ""),
    },
    "Sinks": {
        "sinks": _COUNT,
        "times": ("f", "m", "1"),
        "documents": ("u", "m", ""),
        "positions": ("u", "m", ""),
        "tokens": ("i", "m", ""),
        "words": ("u", "mw", "bytes"),
        "contexts": ("u", "mc", "bytes"),
    },
    "Overlap": {
        **_CELLS,
        "documents": ("i", "", ""),
        "row_pairs": ("f", "", "any"),
        "own": ("f", "k", "any"),
        "pairs": ("f", "k", "any"),
        "likeness": ("f", "k", "any"),
        "sentences": ("f", "k", "any"),
        "total": ("f", "k", "2 any unknown"),
        "rows": ("f", "k", "any unknown"),
    },
    "NamedRows": {
        "kinds": ("u", "m", "bytes kinds"),
        "contents": ("u", "m", ""),
        "ranks": ("f", "m", "1"),
        "marks": ("u", "m", ""),
        "ordinals": ("u", "m", ""),
        "ids": ("u", "mi", "bytes"),
        "texts": ("u", "mx", "bytes"),
    },
    "Adjacent": {
        "pairs": _COUNT,
        "near": ("f", "", ""),
        "squares": ("f", "", "+"),
        "units": ("f", "d", ""),
    },
    "Queries": _HEAD_VECTORS,
    "Keys": _HEAD_VECTORS,
    "EarlyQueries": _MEANS,
    "EarlyKeys": _MEANS,
    "QueryScores": {
        **_CELLS,
        "rows": ("f", "k", "+ total"),
        "sums": ("f", "kd", "1"),
        "bands": ("f", "pd", "1"),
        "blind": _COUNT,
    },
    "Neighbourhoods": {
        "types": ("i", "n", "sorted +"),
        "kept": _COUNT,
        "owners": ("i", "m", "+"),
        "documents": ("u", "m", ""),
        "draws": ("u", "m", ""),
        "rows": ("f", "md", "1"),
    },
    "Gradients": _GRADIENTS,
    "ShuffledGradients": _GRADIENTS,
    "GradientPieces": {
        **_BY_SHARE,
        "documents": _COUNT,
        "share_rows": ("f", "s", "+"),  # every row is in a half and in a band
    },
    "Concepts": {
        "basis": ("f", "dq", "unit"),
        "centre": ("f", "d", "1"),
        "variance": ("f", "q", ""),
        "reach": ("f", "q2n", "1"),
        "tokens": ("i", "q2n", ""),
        "marks": ("u", "q2n", ""),
        "words": ("u", "q2nw", "bytes"),
        "contexts": ("u", "q2nc", "bytes"),
    },
}
# Sizes that are the same in every state of a kind.
_OF_HEADS = {"s": SHARES, "p": POSITIONS}
_SIZES = {
    **dict.fromkeys(("Queries", "Keys", "QueryScores"), _OF_HEADS),
    **{kind: {"s": SHARES, "h": PARTS} for kind in ("Gradients", "ShuffledGradients")},
    "GradientPieces": {"s": PIECE_SHARES},
}
# Arrays that runs of older versions do without.
_MAY_LACK = {"Groups": {"own", "pairs"}, "Tally": {"sample"}, "Overlap": {"total", "rows"}}
# Kinds that see every row of a place in the first pass.
_OF_ALL_ROWS = {
    "Tally", "Moments", "Groups", "Directions", "Norms", "Reservoir", "Copies", "Queries",
    "Keys", "EarlyQueries", "EarlyKeys",
}  # fmt: skip
_OWN_WIDTHS = {"QueryScores": len(STATISTICS)}  # whatever the width of the site


def check_width(width: int) -> None:
    """Refuse a width that no rows have."""
    if not 1 <= width <= WIDEST:
        raise ValueError(f"expected a width of 1 to {WIDEST}, got {width}")


def check_state(kind: str, state: Mapping[str, Array], width: int) -> None:
    """Raise ValueError where arrays cannot be the state of an accumulator of this kind."""
    check_width(width)
    layout = {"count": _COUNT, **LAYOUTS[kind]}
    missing = layout.keys() - state.keys() - _MAY_LACK.get(kind, set())
    if missing:
        raise ValueError(f"its {kind} have no {min(missing)!r}")
    for problem in _problems(kind, state, layout, width):
        raise ValueError(f"its {kind} are not sums of rows: {problem}")


def check_place(kinds: Mapping[str, int], states: Mapping[str, Mapping[str, Array]]) -> None:
    """Raise ValueError where accumulators cannot have seen the same rows, or cannot be at all.

    `kinds` are their widths. Kinds that are not known are ignored.
    """
    known = {kind: width for kind, width in kinds.items() if kind in LAYOUTS}
    for width in known.values():
        check_width(width)
    widths = {width for kind, width in known.items() if kind not in _OWN_WIDTHS}
    if len(widths) > 1:
        raise ValueError(f"expected one width at a site, got {sorted(widths)}")
    for kind, width in known.items():
        if width != _OWN_WIDTHS.get(kind, width):
            raise ValueError(f"its {kind} have a width of {width}, not {_OWN_WIDTHS[kind]}")
    for kind, width in known.items():
        check_state(kind, states.get(kind, {}), width)
    counts = {int(states[kind]["count"]) for kind in known if kind in _OF_ALL_ROWS}
    if len(counts) > 1:
        raise ValueError(f"expected one number of rows at a site, got {sorted(counts)}")


def _problems(
    kind: str,
    state: Mapping[str, Array],
    layout: Mapping[str, tuple[str, str, str]],
    width: int,
) -> Iterator[str]:
    sizes = {"d": width, "t": width * (width + 1) // 2, "2": 2, "3": 3}
    sizes |= _SIZES.get(kind, {})
    for name, (kinds, axes, _) in layout.items():
        if name not in state:
            continue
        array = state[name]
        known = array.dtype.kind in kinds and array.dtype.name in TYPES
        if not known or array.ndim != len(axes):
            yield f"{name!r} has the type {array.dtype} and {array.ndim} axes"
        for axis, size in zip(axes, array.shape, strict=False):
            if sizes.setdefault(axis, size) != size:
                yield f"{name!r} has the shape {array.shape}"
    count = int(state["count"])
    if kind.endswith("Gradients") and sizes.get("c") != sizes.get("q", 0) + 2:
        yield "'sums' and 'basis' have different numbers of directions"
    yield from _misplaced_rows(kind, state)
    for name, (_, _, rules) in layout.items():
        if name in state and (what := _check_values(state[name], rules.split(), count)):
            yield f"{name!r} {what}"


def _misplaced_rows(kind: str, state: Mapping[str, Array]) -> Iterator[str]:
    """Yield what is wrong with rows that were kept."""
    if kind == "Reservoir" and len(state["rows"]) > int(state["size"]):
        yield "there are more rows than it has room for"
    if kind == "Neighbourhoods":
        owners = state["owners"]
        if int(owners.max(initial=-1)) >= len(state["types"]):
            yield "there are rows of none of their types"
        if (owners[1:] < owners[:-1]).any():
            yield "'owners' is not in order"


def _check_values(array: Array, rules: list[str], count: int) -> str | None:
    """Return what is wrong with the values of an array."""
    if array.dtype.kind == "f":
        return _check_floats(array, rules, count)
    if "bytes" in rules and array.dtype != np.uint8:
        return f"has the type {array.dtype}"
    if "bool" in rules and int(array) > 1:
        return "is neither true nor false"
    if "kinds" in rules and array.size and int(array.max()) > 3:
        return "names no kind of row"
    if "sorted" in rules and (array[1:] <= array[:-1]).any():
        return "is not in order"
    least = 1 if "some" in rules else 0
    if array.size and "+" in rules and int(array.min()) < least:
        return "is negative"
    if array.size and "+" in rules and int(array.max()) > _MOST:
        return "counts more rows than there are"
    if array.size and "bins" in rules and int(np.abs(array).max()) > 1 << 20:
        return "has norms that no row can have"
    return None


def _largest(rules: list[str], count: int) -> float:
    """Return the largest number that an array can have.

    Sums over rows of powers of them; without a power, counts or sums of unit vectors, of all
    pairs of rows at the most.
    """
    if "unit" in rules:
        return 1.01
    power = next((int(rule) for rule in rules if rule.isdigit()), 0)
    # What several classes of rows have in common is counted in documents, not in rows.
    rows = float(_MOST) if "any" in rules else float(max(count, 1))
    times = 2 if power == 0 or {"pairs", "any"} & {*rules} else int(power > 1)
    return 16.0 * LONGEST**power * rows**times


def _check_floats(array: Array, rules: list[str], count: int) -> str | None:
    if not array.size:
        return None
    if "unknown" in rules:  # NaN in runs of older versions
        array = array[~np.isnan(array)]
        if not array.size:
            return None
    low, high = float(array.min()), float(array.max())
    most = _largest(rules, count)
    if not (low >= -most and high <= most):  # also NaN
        return "has NaN or infinity" if not np.isfinite([low, high]).all() else "is too large"
    if "+" in rules and low < 0:
        return "is negative"
    if "total" in rules and abs(float(array.sum()) - count) > 1e-6 * count:
        return f"adds up to {float(array.sum()):g} rows instead of {count}"
    return None
