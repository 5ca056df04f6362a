"""The dimensions that were zeroed: their records, and how these look."""

from math import isfinite

import msgspec

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Record,
    RecordLayout,
    Results,
    Table,
    count,
    format_value,
    integers,
    non_empty,
    numbers,
    plain,
)

FEW = "too few documents for intervals"
NO_SHARES = "there is no final norm to take shares from: only random dimensions were zeroed"


@dataclass(frozen=True)
class ZeroedDimension(Record):
    """One dimension of the norms, and how far the output moves without it."""

    dimension: int
    chosen: str  # "top" by its share of the mean cosine, "random", or "given"
    share: float | None  # of the mean cosine of the final norm's output on these documents
    kl: float  # nats per token, KL(as shipped || zeroed)
    low: float | None  # 95 % interval over documents
    high: float | None
    times_random: float | None = None  # its KL over the mean KL of random dimensions


@dataclass(frozen=True)
class Conditions(Record):
    """What all dimensions were measured with."""

    model: str
    norms: tuple[str, ...]  # in which dimensions were zeroed
    documents: int
    tokens: int
    d: int


def results_of(
    found: list[ZeroedDimension], conditions: Conditions
) -> Results[ZeroedDimension]:
    """Return the results, with the remarks that belong to them."""
    remarks = [FEW] if all(each.low is None for each in found) else []
    remarks += [NO_SHARES] if all(each.share is None for each in found) else []
    return Results(found, ZEROED, shared=conditions.to_dict(), remarks=remarks)


def _tables(found: Results[ZeroedDimension]) -> tuple[Table, ...]:
    """One line per dimension."""
    pairs = [
        format_value(each.kl, each.low, each.high) if isfinite(each.kl) else ("infinite", "")
        for each in found
    ]
    times = (each.times_random for each in found)
    ratios = ("" if n is None else f"{n:,.0f}x" if n >= 100 else f"{n:.2g}x" for n in times)
    shares = ("" if e.share is None else f"{100 * e.share:.1f} %" for e in found)
    columns = (
        Column("dimension", tuple(str(each.dimension) for each in found)),
        Column("chosen", tuple(each.chosen for each in found), words=True),
        Column("share of cosine", tuple(shares)),
        Column("KL", tuple(value for value, _ in pairs)),
        Column("95 % interval", tuple(ends for _, ends in pairs)),
        Column("to random", tuple(ratios)),
    )
    caption = _caption(msgspec.convert(found.shared, Conditions))
    return (Table(caption, non_empty(columns), found.remarks),)


def _caption(shared: Conditions) -> str:
    norms = [plain(each) for each in shared.norms]
    named = ", ".join(norms[:2]) + (f" and {len(norms) - 2} more" if norms[2:] else "")
    sizes = f"{count(shared.documents)} documents, {count(shared.tokens)} tokens"
    return f"model {plain(shared.model)}, zeroed in {named}; {sizes}; KL in nats per token"


ZEROED = RecordLayout(
    name="dimensions",
    tables=_tables,
    to_dict=ZeroedDimension.to_dict,
    fields=(
        Field("model"),
        Field("norms", "texts"),
        *integers("documents", "tokens", "d", "dimension"),
        Field("chosen"),
        *numbers("share", "kl", "low", "high", "times_random"),
    ),
)
