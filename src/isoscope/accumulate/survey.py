"""A survey: the accumulators of every site, which merge as they do, and its variants.

Rows of a model fall into four disjoint classes, each with accumulators of its own; a variant
(with or without special tokens and sinks) is the merge of some of them. Nothing is ever
subtracted: the difference of two large sums has no digits left where one token carries nearly
all of the variance.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import NotRequired, Protocol, TypedDict

from isoscope.accumulate import (
    ACCUMULATORS,
    Accumulator,
    Adjacent,
    Block,
    CentredDirections,
    DocumentSums,
    EarlyKeys,
    Keys,
    Kind,
    NamedRows,
    Overlap,
    Partitions,
    merged,
)
from isoscope.accumulate.overlap import Meeting
from isoscope.dataclass import dataclass
from isoscope.errors import MergeError
from isoscope.site import HEAD, Site, key_sites
from isoscope.types import CLASSES, VARIANTS, Array

Place = tuple[str, str]  # site, and class of rows or variant
Accumulators = dict[Kind, Accumulator[object]]

ORDINARY, SPECIAL, SINK, SPECIAL_SINK = CLASSES
SECOND_PASS: tuple[Kind, ...] = (CentredDirections, Partitions)
# Kinds that one part may have and another not: a place without sinks has no overlap, a
# source without ids no named rows.
_BY_CHANCE = {Overlap, NamedRows, Adjacent, *SECOND_PASS}
_BY_NAME: dict[str, Kind] = {kind.__name__: kind for kind in ACCUMULATORS}
# Kinds that runs of older versions may have and nothing reads.
_RETIRED = {"Keyed", "Bands", "Crossing"}


class PlaceState(TypedDict):
    """One place of a saved survey: the width of each of its accumulators."""

    site: str
    variant: str
    kinds: dict[str, int]


class SurveyState(TypedDict):
    """What describes the arrays of a saved survey."""

    places: list[PlaceState]
    trouble: NotRequired[dict[str, str]]
    seen: NotRequired[dict[str, int]]
    same: NotRequired[dict[str, str]]


class WithSites(Protocol):
    """What has summaries of sites, some of which may have the rows of another."""

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that have summaries, each once."""
        ...

    @property
    def same(self) -> Mapping[str, str]:
        """Sites that have the rows of another, which holds the summaries of both."""
        ...


def same_in_all(parts: Sequence[WithSites]) -> dict[str, str]:
    """Return the sites that have the rows of another in every part that has either."""
    found = {site: source for part in parts for site, source in part.same.items()}
    return {
        site: source
        for site, source in found.items()
        if all(
            part.same.get(site) == source or not {site, source} & set(part.sites)
            for part in parts
        )
    }


def shared_keys(sites: Iterable[str]) -> dict[str, str]:
    """Return for each attention head the site that holds its keys; nothing without heads."""
    return _shared_keys(tuple(sites))


@lru_cache(maxsize=8)  # the heads of one model are looked up hundreds of times
def _shared_keys(sites: tuple[str, ...]) -> dict[str, str]:
    parsed = {name: Site.parse(name) for name in sites if HEAD in name or ".k." in f".{name}"}
    heads = [name for name, site in parsed.items() if site.family == HEAD]
    keys = [name for name, site in parsed.items() if site.family == "k"]
    return key_sites(heads, keys) if heads else {}


def join_keys(
    held: Mapping[Place, Accumulators], keys: Mapping[Kind, Accumulator[object]]
) -> dict[Place, Accumulators]:
    """Return the summaries of a head with those of the keys that it reads."""
    own = {kind: part for kind, part in keys.items() if kind in (Keys, EarlyKeys)}
    return {place: {**here, **own} for place, here in held.items()}


@dataclass
class Survey:
    """Accumulators by site, variant and kind."""

    held: dict[Place, Accumulators] = field(default_factory=dict[Place, Accumulators])
    trouble: dict[str, str] = field(default_factory=dict[str, str])  # sites not measured: why
    seen: dict[str, int] = field(default_factory=dict[str, int])  # rows of each source
    same: dict[str, str] = field(default_factory=dict[str, str])  # site: whose rows it has
    _met: tuple[Sequence[DocumentSums], Meeting] | None = None

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites that have summaries, each once, in the order they were first seen.

        Keys of attention heads are parts of the heads, and no sites of their own.
        """
        names = tuple(dict.fromkeys(site for site, _ in self.places))
        parts = set(shared_keys(names).values())
        return tuple(name for name in names if name not in parts)

    @property
    def places(self) -> tuple[Place, ...]:
        """Site and class or variant of all summaries; sites with equal rows together."""
        return tuple(
            (each, name)
            for site, name in self.held
            for each in (site, *(at for at, source in self.same.items() if source == site))
        )

    def of_site(self, site: str) -> dict[Place, Accumulators]:
        """Return the accumulators of all places of a site."""
        source = self.same.get(site, site)
        found = {(site, name): here for (at, name), here in self.held.items() if at == source}
        keys = shared_keys(dict.fromkeys(at for at, _ in self.held)).get(site)
        return found if keys is None else join_keys(found, self.held.get((keys, "all"), {}))

    def part(self, places: Iterable[Place]) -> "Survey":
        """Return a survey of some places; its accumulators are the same."""
        sources = {place: (self.same.get(place[0], place[0]), place[1]) for place in places}
        return Survey(
            {place: self.held[each] for place, each in sources.items() if each in self.held}
        )

    def drop(self, site: str, why: str) -> None:
        """Drop a site whose rows cannot be measured. The others stay."""
        self.trouble.setdefault(site, why)
        self.same.pop(site, None)
        for place in list(self.held):  # to which another thread may add
            if place[0] == site:
                del self.held[place]

    def sort(self, sites: Sequence[str]) -> None:
        """Put everything into one order, whichever batch was the first to show it."""
        numbers = {site: number for number, site in enumerate(sites)}
        ordered = sorted(self.held, key=lambda place: (numbers[place[0]], place[1]))
        self.held = {place: self.held[place] for place in ordered}
        self.trouble = {site: self.trouble[site] for site in sites if site in self.trouble}

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
        met = self._met
        if met is None or met[0] is not classes:  # several variants have the same
            met = self._met = (classes, Meeting.of(classes, folded=folded))
        overlap.add_meeting(met[1])

    def merge(self, other: "Survey") -> None:
        """Take in everything another survey has seen."""
        for site, why in other.trouble.items():
            self.drop(site, why)
        for source, rows in other.seen.items():
            self.seen[source] = self.seen.get(source, 0) + rows
        for place, theirs in self._agree_on_same(other).items():
            if place[0] in self.trouble:
                continue
            if place not in self.held:
                self.held[place] = _copied(theirs)
                continue
            ours = self.held[place]
            _align_kinds(ours, theirs)
            if ours.keys() - _BY_CHANCE != theirs.keys() - _BY_CHANCE:
                raise MergeError(
                    f"cannot merge surveys that kept different summaries at {place[0]}",
                    hint="measure both with the same measures",
                    slug="merge-kind",
                )
            for kind, part in ours.items():
                if kind in theirs:
                    part.merge(theirs[kind])

    def _agree_on_same(self, other: "Survey") -> dict[Place, Accumulators]:
        """Keep only what has the same rows in both; return what the other holds besides."""
        kept = same_in_all([self, other])
        for site in [each for each in self.same if each not in kept]:  # always in one order
            own = {place: _copied(here) for place, here in self.of_site(site).items()}
            del self.same[site]
            self.held.update(own)
        apart = [other.of_site(site) for site in other.same if site not in kept]
        self.same = {site: of for site, of in kept.items() if site not in self.trouble}
        return {place: here for part in (other.held, *apart) for place, here in part.items()}

    def to_state(self) -> tuple[SurveyState, dict[str, Array]]:
        """Return what rebuilds the survey: a description and arrays by name."""
        places: list[PlaceState] = []
        arrays: dict[str, Array] = {}
        for number, ((site, variant), here) in enumerate(self.held.items()):
            widths = {kind.__name__: a.width for kind, a in here.items()}
            places.append({"site": site, "variant": variant, "kinds": widths})
            for kind, accumulator in here.items():
                for name, array in accumulator.state().items():
                    arrays[f"{number}.{kind.__name__}.{name}"] = array
        meta: SurveyState = {"places": places, "trouble": dict(self.trouble)}
        if self.seen:
            meta["seen"] = dict(self.seen)
        if self.same:
            meta["same"] = dict(self.same)
        return meta, arrays

    @classmethod
    def from_state(cls, meta: SurveyState, arrays: Mapping[str, Array]) -> "Survey":
        """Rebuild a survey from what `to_state` returned; retired kinds are ignored."""
        survey = cls(
            trouble=dict(meta.get("trouble", {})),
            seen=dict(meta.get("seen", {})),
            same=dict(meta.get("same", {})),
        )
        states: dict[tuple[str, str], dict[str, Array]] = {}  # by number and kind
        for name, array in arrays.items():
            number, kind_name, part = name.split(".", 2)
            states.setdefault((number, kind_name), {})[part] = array
        for index, place in enumerate(meta["places"]):
            here = survey.held.setdefault((place["site"], place["variant"]), {})
            for kind_name, width in place["kinds"].items():
                if kind_name in _RETIRED:
                    continue
                state, kind = states.get((str(index), kind_name), {}), _BY_NAME[kind_name]
                here[kind] = kind.from_state(state, width=width)
        return survey


def _copied(here: Mapping[Kind, Accumulator[object]]) -> Accumulators:
    return {
        kind: kind.from_state(part.state(), width=part.width) for kind, part in here.items()
    }


def variants(
    held: Mapping[Place, Mapping[Kind, Accumulator[object]]],
) -> Iterator[tuple[str, tuple[str, ...], Accumulators]]:
    """Yield every site in every variant it has rows for, with accumulators to read.

    Variants that have the same rows come together: where there are no sinks, `no-sink` is
    `all`. Vectors on disk have no classes: what is stored under a variant's own name is
    yielded as it is. So is what a second pass has collected, since each variant has a mean
    of its own.
    """
    for site in dict.fromkeys(site for site, _ in held):
        alike: dict[tuple[str, ...], list[str]] = {}
        for variant, classes in VARIANTS.items():
            there = tuple(each for each in classes if (site, each) in held)
            if there or held.get((site, variant), {}).keys() - {Overlap}:
                alike.setdefault(there or (variant,), []).append(variant)
        for classes, names in alike.items():
            parts = [held[site, each] for each in classes if each in CLASSES]
            own = dict(held.get((site, names[0]), {}))
            whole = {
                kind: merged(part[kind] for part in parts) if len(parts) > 1 else found
                for kind, found in (parts[0] if parts else {}).items()
            }
            overlap = own.pop(Overlap, None)
            if isinstance(overlap, Overlap) and len(parts) > 1:
                overlap.correct(whole.values())
            yield site, tuple(names), whole | own


def _align_kinds(ours: Accumulators, theirs: Mapping[Kind, Accumulator[object]]) -> None:
    """Add empty accumulators that only they have; drop second passes that do not add up.

    Those that started from different first passes do not.
    """
    for kind in (Overlap, NamedRows, Adjacent):
        if kind in theirs:
            ours.setdefault(kind, kind(theirs[kind].width))
    for kind in SECOND_PASS:
        if kind in ours and (
            kind not in theirs or theirs[kind].signature() != ours[kind].signature()
        ):
            del ours[kind]
