"""The verb of zeroing: what the output of a model loses with one dimension of its norms."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from isoscope.display.escape import plain
from isoscope.display.frames import Field, integers, numbers
from isoscope.display.number import count, format_value
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Column, Table
from isoscope.lab.zero.spec import ZeroSpec
from isoscope.study.keywords import call, keywords
from isoscope.study.spec import EngineOptions

if TYPE_CHECKING:
    from isoscope.lab.zero.worker import ZeroedDimension

FEW = "too few documents for intervals"
UNTOLD = "there is no final norm to take shares from: only random dimensions were zeroed"


@dataclass(frozen=True)
class Zeroed:
    """One dimension that was zeroed, beside the random ones."""

    told: "ZeroedDimension"
    times_random: float | None  # its KL over the mean one of random dimensions

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        record = self.told.to_dict()
        return {"dimension": record.pop("index"), **record, "times_random": self.times_random}


def _tables(found: Results[Zeroed]) -> tuple[Table, ...]:
    """One line per dimension."""
    told = [each.told for each in found]
    pairs = [_kl(each) for each in told]
    shares = ("" if e.share is None else f"{100 * e.share:.1f} %" for e in told)
    columns = (
        Column("dimension", tuple(str(each.index) for each in told)),
        Column("chosen", tuple(each.chosen for each in told), words=True),
        Column("share of cosine", tuple(shares)),
        Column("KL", tuple(value for value, _ in pairs)),
        Column("95 % interval", tuple(ends for _, ends in pairs)),
        Column("to random", tuple(_ratio(each.times_random) for each in found)),
    )
    kept = tuple(column for column in columns if any(column.cells))
    return (Table(_caption(found.shared), kept, found.remarks),)


def _caption(shared: Mapping[str, Any]) -> str:
    norms = [plain(each) for each in shared["norms"]]
    named = ", ".join(norms[:2]) + (f" and {len(norms) - 2} more" if norms[2:] else "")
    sizes = f"{count(shared['documents'])} documents, {count(shared['tokens'])} tokens"
    return f"model {plain(shared['model'])}, zeroed in {named}; {sizes}; KL in nats a token"


ZEROED = RecordLayout(
    name="dimensions",
    tables=_tables,
    to_dict=Zeroed.to_dict,
    fields=(
        Field("model"),
        Field("norms", "texts"),
        *integers("documents", "tokens", "d", "dimension"),
        Field("chosen"),
        *numbers("share", "kl", "low", "high", "times_random"),
    ),
)


@keywords(ZeroSpec, EngineOptions)
def zero(*arguments: Any, **options: Any) -> Results[Zeroed]:
    """Measure how far the output distribution moves when one dimension of norms is zeroed.

    Without `dimensions`, those with the largest share of the mean cosine after the final norm
    are taken; random ones stand beside them. Gain and bias are zeroed by hooks, in the final
    norm, in all norms of the last N blocks, or in those named: weights are untouched.
    """
    found = call(ZeroSpec, arguments, options, EngineOptions)
    usual = [each.kl for each in found.dimensions if each.chosen == "random"]
    mean = sum(usual) / len(usual) if usual else 0.0
    remarks = [FEW] if all(each.low is None for each in found.dimensions) else []
    remarks += [UNTOLD] if all(each.share is None for each in found.dimensions) else []
    return Results(
        (Zeroed(each, _times(each.kl, mean)) for each in found.dimensions),
        ZEROED,
        shared={
            "model": found.model,
            "norms": found.norms,
            "documents": found.documents,
            "tokens": found.tokens,
            "d": found.d,
        },
        remarks=remarks,
    )


def _times(kl: float, mean: float) -> float | None:
    return kl / mean if mean > 0 and isfinite(kl / mean) else None


def _ratio(times: float | None) -> str:
    if times is None:
        return ""
    return f"{times:,.0f}x" if times >= 100 else f"{times:.2g}x"


def _kl(each: "ZeroedDimension") -> tuple[str, str]:
    return format_value(each.kl, each.low, each.high) if isfinite(each.kl) else ("infinite", "")
