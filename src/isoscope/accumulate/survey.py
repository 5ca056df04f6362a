"""A survey: the accumulators of every site, which merge as they do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from isoscope.accumulate import (
    ACCUMULATORS,
    Accumulator,
    Block,
    CentredDirections,
    DocumentSums,
    Overlap,
    Partitions,
)
from isoscope.accumulate.overlap import Meeting
from isoscope.accumulate.variant import Kind, Place
from isoscope.errors import MergeError
from isoscope.types import Array

SECOND_PASS: tuple[Kind, ...] = (CentredDirections, Partitions)
# Kinds that one part may have and another not: of a place without sinks there is no overlap.
_BY_CHANCE = {Overlap, *SECOND_PASS}
_BY_NAME: dict[str, Kind] = {kind.__name__: kind for kind in ACCUMULATORS}


@dataclass
class Survey:
    """Accumulators by site, variant and kind."""

    held: dict[Place, dict[Kind, Accumulator[Any]]] = field(
        default_factory=dict[Place, dict[Kind, Accumulator[Any]]]
    )
    trouble: dict[str, str] = field(default_factory=dict[str, str])  # sites not measured: why
    seen: dict[str, int] = field(default_factory=dict[str, int])  # rows of each source
    _met: tuple[Sequence[DocumentSums], Meeting] | None = None

    def spoil(self, site: str, why: str) -> None:
        """Give a site up: what it said cannot be measured. The others go on."""
        self.trouble.setdefault(site, why)
        for place in [place for place in self.held if place[0] == site]:
            del self.held[place]

    def update(self, place: Place, kinds: Sequence[Kind], block: Block) -> None:
        """Show a block of a site to its accumulators, made on first sight."""
        here = self.held.setdefault(place, {})
        for kind in kinds:
            if (kind.by_token and block.tokens is None) or (
                kind.by_place and block.independent
            ):
                continue
            if kind not in here:
                here[kind] = kind(block.width)
            here[kind].update(block)

    def meet(
        self, place: Place, classes: Sequence[DocumentSums], *, width: int, folded: bool
    ) -> None:
        """Note documents that have rows in several classes of a variant."""
        overlap = self.held.setdefault(place, {}).setdefault(Overlap, Overlap(width))
        assert isinstance(overlap, Overlap)
        if self._met is None or self._met[0] is not classes:  # several variants have the same
            self._met = (classes, Meeting.of(classes, folded=folded))
        overlap.add_meeting(self._met[1])

    def merge(self, other: "Survey") -> None:
        """Take in everything another survey has seen."""
        for site, why in other.trouble.items():
            self.spoil(site, why)
        for source, rows in other.seen.items():
            self.seen[source] = self.seen.get(source, 0) + rows
        for place, theirs in other.held.items():
            if place[0] in self.trouble:
                continue
            if place not in self.held:
                self.held[place] = {
                    kind: kind.from_state(part.state(), width=part.width)
                    for kind, part in theirs.items()
                }
                continue
            ours = self.held[place]
            _drop_second_passes(ours, theirs)
            if ours.keys() - _BY_CHANCE != theirs.keys() - _BY_CHANCE:
                raise MergeError(
                    f"cannot merge surveys that kept different summaries at {place[0]}",
                    hint="measure both with the same measures",
                    slug="merge-kind",
                )
            if Overlap in theirs:
                ours.setdefault(Overlap, Overlap(theirs[Overlap].width))
            for kind, part in ours.items():
                if kind in theirs:
                    part.merge(theirs[kind])

    def to_state(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what rebuilds the survey: a description and arrays by name."""
        places: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        for number, ((site, variant), here) in enumerate(self.held.items()):
            widths = {kind.__name__: a.width for kind, a in here.items()}
            places.append({"site": site, "variant": variant, "kinds": widths})
            for kind, accumulator in here.items():
                for name, array in accumulator.state().items():
                    arrays[f"{number}.{kind.__name__}.{name}"] = array
        meta: dict[str, Any] = {"places": places, "trouble": dict(self.trouble)}
        if self.seen:
            meta["seen"] = dict(self.seen)
        return meta, arrays

    @classmethod
    def from_state(cls, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> "Survey":
        """Rebuild a survey from what `to_state` returned."""
        survey = cls(trouble=dict(meta.get("trouble", {})), seen=dict(meta.get("seen", {})))
        states: dict[tuple[str, str], dict[str, Array]] = {}  # by number and kind, found once
        for name, array in arrays.items():
            number, kind_name, part = name.split(".", 2)
            states.setdefault((number, kind_name), {})[part] = array
        for index, place in enumerate(meta["places"]):
            here = survey.held.setdefault((place["site"], place["variant"]), {})
            for kind_name, width in place["kinds"].items():
                kind = _BY_NAME[kind_name]
                here[kind] = kind.from_state(
                    states.get((str(index), kind_name), {}), width=width
                )
        return survey


def _drop_second_passes(
    ours: dict[Kind, Accumulator[Any]], theirs: Mapping[Kind, Accumulator[Any]]
) -> None:
    """Forget second passes that started from different first ones: they do not add up."""
    for kind in SECOND_PASS:
        if kind in ours and (
            kind not in theirs or theirs[kind].signature() != ours[kind].signature()
        ):
            del ours[kind]
