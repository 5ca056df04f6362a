"""The states of a model at its sites, summed: the one way models become summaries."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from isoscope.accumulate.sums import DocumentSums
from isoscope.accumulate.survey import SECOND_PASS, Kind, Survey, variants
from isoscope.dataclass import dataclass
from isoscope.store.state import State
from isoscope.study.reading import kinds_for, second_passes
from isoscope.types import Array

if TYPE_CHECKING:
    from isoscope.capture.listener import Listener, Meet, Repeat, Take
    from isoscope.capture.tensor_block import TensorBlock

Kinds = tuple[Kind, ...]


@dataclass(frozen=True)
class SiteKinds:
    """Which kinds of summaries each site has: of the first pass and of the second."""

    names: Sequence[str]
    causes: bool = True
    named: Sequence[str] | None = None  # measures that the user chose by name
    intervals: bool = True  # else only what the values of measures need
    also: Sequence[Kind] = ()  # needed at every site, besides what the measures need
    _known: dict[str, Kinds] = field(default_factory=dict[str, Kinds], init=False)

    def of(self, site: str) -> Kinds:
        """Return all kinds of a site, by its family."""
        if site not in self._known:
            found = kinds_for(
                self.names,
                causes=self.causes,
                site=site,
                named=self.named or (),
                intervals=self.intervals,
            )
            self._known[site] = tuple(dict.fromkeys((*found, *self.also)))
        return self._known[site]

    def first(self, site: str) -> Kinds:
        """Return the kinds that one pass fills."""
        return tuple(kind for kind in self.of(site) if kind not in SECOND_PASS)

    def second(self, site: str) -> Kinds:
        """Return the kinds that need to know the mean before they begin."""
        return tuple(kind for kind in self.of(site) if kind in SECOND_PASS)


@dataclass(frozen=True)
class ListenerOptions:
    """How a listener treats rows, sinks and tokens."""

    sinks: float
    seed: int
    folded: bool | None = None
    sketched: bool = True
    gather: bool = False  # few rows of a class wait for more; whoever runs it finishes it
    bands: Array | None = None
    decode: Callable[[list[int]], str] | None = None
    alone: Collection[str] | None = None  # sites that share no sums; None: no site does

    def listener(
        self,
        take: "Take",
        drop: Callable[[str, str], None],
        meet: "Meet | None" = None,
        repeat: "Repeat | None" = None,
    ) -> "Listener":
        """Return a listener; without `meet` its blocks are of whole variants."""
        from isoscope.capture.listener import Listener

        return Listener(
            take,
            drop,
            meet,
            whole_variants=meet is None,
            times=self.sinks,
            seed=self.seed,
            folded=self.folded,
            sketched=self.sketched,
            gather=self.gather and meet is not None,
            bands=self.bands,
            decode=self.decode,
            repeat=repeat,
        )


def first_pass(survey: Survey, kinds: SiteKinds, options: ListenerOptions) -> "Listener":
    """Return a listener that sums what it hears into a survey."""

    def take(site: str, row_class: str, block: "TensorBlock") -> None:
        survey.update((site, row_class), kinds.first(site), block)

    def meet(site: str, variant: str, classes: list[DocumentSums]) -> None:
        width = len(classes[0].units.T)
        survey.meet((site, variant), classes, width=width, folded=bool(options.folded))

    def repeat(site: str, source: str) -> bool:
        alone = options.alone or ()
        if site in alone or source in alone or kinds.first(site) != kinds.first(source):
            return False
        survey.same[site] = source
        return True

    return options.listener(take, survey.drop, meet, None if options.alone is None else repeat)


def second_pass(survey: Survey, options: ListenerOptions) -> "Listener":
    """Return a listener that fills what `begin_second` has laid out."""

    def take(site: str, variant: str, block: "TensorBlock") -> None:
        for part in survey.held.get((site, variant), {}).values():
            part.update(block)

    return options.listener(take, survey.drop)


def begin_second(before: State, sites: Sequence[str], kinds: SiteKinds) -> Survey:
    """Return a survey of second passes, built from what the first has seen."""
    survey = Survey()
    for site in sites:
        for _, alike, here in variants(before.survey_of(site).held):
            survey.held[site, alike[0]] = second_passes(here, kinds.second(site))
    return survey
