"""The dimensions that were zeroed: their records, and how these look."""

from dataclasses import dataclass
from math import isfinite

import msgspec

from isoscope.display.escape import plain
from isoscope.display.frames import Field, Record, integers, numbers
from isoscope.display.number import count, format_value
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Column, Table, non_empty

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
    pairs = [_kl(each) for each in found]
    shares = ("" if e.share is None else f"{100 * e.share:.1f} %" for e in found)
    columns = (
        Column("dimension", tuple(str(each.dimension) for each in found)),
        Column("chosen", tuple(each.chosen for each in found), words=True),
        Column("share of cosine", tuple(shares)),
        Column("KL", tuple(value for value, _ in pairs)),
        Column("95 % interval", tuple(ends for _, ends in pairs)),
        Column("to random", tuple(_ratio(each.times_random) for each in found)),
    )
    caption = _caption(msgspec.convert(found.shared, Conditions))
    return (Table(caption, non_empty(columns), found.remarks),)


def _caption(shared: Conditions) -> str:
    norms = [plain(each) for each in shared.norms]
    named = ", ".join(norms[:2]) + (f" and {len(norms) - 2} more" if norms[2:] else "")
    sizes = f"{count(shared.documents)} documents, {count(shared.tokens)} tokens"
    return f"model {plain(shared.model)}, zeroed in {named}; {sizes}; KL in nats per token"


def _ratio(times: float | None) -> str:
    if times is None:
        return ""
    return f"{times:,.0f}x" if times >= 100 else f"{times:.2g}x"


def _kl(each: ZeroedDimension) -> tuple[str, str]:
    return format_value(each.kl, each.low, each.high) if isfinite(each.kl) else ("infinite", "")


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
