"""An exhibit: one run as a page sees it, all of it plain values from types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import isfinite
from typing import Any, TypeVar

from isoscope.display.escape import plain
from isoscope.types import Curve, Reading

Level = Mapping[tuple[str, str, str], float]  # (site, variant, measure) to its isotropic value

C = TypeVar("C", bound=Curve)


@dataclass(frozen=True)
class Exhibit:
    """The readings of a run, the curves drawn from its summaries, and where it comes from."""

    name: str
    readings: Sequence[Reading]
    curves: Sequence[Curve] = ()
    facts: Mapping[str, str] = field(default_factory=dict[str, str])  # where it comes from
    levels: Level = field(default_factory=dict[tuple[str, str, str], float])
    noun: str = "rows"  # what a row is: tokens, texts, vectors
    remarks: Sequence[str] = ()  # what could not be computed or read, and why

    def drawn(self, kind: type[C]) -> list[C]:
        """Return the curves of one kind, in the order of the run."""
        return [curve for curve in self.curves if isinstance(curve, kind)]

    def curve(self, kind: type[C], site: str, variant: str = "all") -> C | None:
        """Return one curve, or None where the run has no such thing."""
        found = (
            each for each in self.drawn(kind) if (each.site, each.variant) == (site, variant)
        )
        return next(found, None)

    def reading(self, measure: str, site: str, variant: str = "all") -> Reading | None:
        """Return a reading of all rows of a site, the last step of a series."""
        found = None
        for each in self.readings:
            if (each.measure, each.site, each.variant) == (measure, site, variant):
                found = found if each.group else each
        return found

    @property
    def sites(self) -> list[str]:
        """The sites that have readings, in the order of the run."""
        return list(dict.fromkeys(each.site for each in self.readings))

    @property
    def finite(self) -> "Exhibit":
        """The same without readings that are no numbers; how many there were is a remark."""
        kept = [_bounded(each) for each in self.readings if isfinite(each.value)]
        lost = len(self.readings) - len(kept)
        if not lost:
            same = all(a is b for a, b in zip(kept, self.readings, strict=True))
            return self if same else replace(self, readings=kept)
        remark = f"{lost} of {len(self.readings)} readings are NaN or infinite: not shown"
        return replace(self, readings=kept, remarks=(*self.remarks, remark))

    @property
    def harmless(self) -> "Exhibit":
        """The same with every name written out that a page or a terminal might obey."""
        return replace(
            self,
            name=plain(self.name),
            readings=[_harmless(each) for each in self.readings],
            curves=[_written_out(curve) for curve in self.curves],
            facts={plain(name): plain(text) for name, text in self.facts.items()},
            levels={
                (plain(site), plain(variant), plain(measure)): level
                for (site, variant, measure), level in self.levels.items()
            },
            remarks=[plain(text) for text in self.remarks],
        )


def _bounded(each: Reading) -> Reading:
    """Return a reading whose interval is one, or none at all."""
    ends = [end for end in (each.low, each.high) if end is not None]
    return each if all(map(isfinite, ends)) else replace(each, low=None, high=None)


def _written_out(value: Any) -> Any:
    """Return a value with every text in it made harmless, however deep it lies."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, tuple):
        return tuple(map(_written_out, value))
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        return replace(value, **{name: _written_out(part) for name, part in parts.items()})
    return value


def _harmless(each: Reading) -> Reading:
    named = (each.run, each.site, each.variant, each.group, each.measure, *each.warnings)
    if all(text.isprintable() for text in named):
        return each
    return replace(
        each,
        run=plain(each.run),
        site=plain(each.site),
        variant=plain(each.variant),
        group=plain(each.group),
        measure=plain(each.measure),
        warnings=tuple(plain(text) for text in each.warnings),
    )
