"""What a model says at its sites, summed: the one way models become summaries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isoscope.accumulate.survey import SECOND_PASS, Survey, variants
from isoscope.study.reading import kinds_for, second_passes

if TYPE_CHECKING:
    from isoscope.accumulate.sums import DocumentSums
    from isoscope.accumulate.survey import Kind
    from isoscope.capture.listener import Listener, Meet, Take
    from isoscope.capture.tensor_block import TensorBlock
    from isoscope.store.state import State
    from isoscope.types import Array


class SiteKinds:
    """Which kinds of summaries each site has: of the first pass and of the second."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        causes: bool = True,
        named: Sequence[str] | None = None,
        intervals: bool = True,
        also: Sequence["Kind"] = (),
    ) -> None:
        self.names = tuple(names)
        self.intervals = intervals  # else only what the values of measures need
        self.also = tuple(also)  # needed at every site, besides what the measures need
        self.named = tuple(named or ())  # measures that the user asked for by name
        self.causes = causes
        self._known: dict[str, tuple[Kind, ...]] = {}

    def of(self, site: str) -> tuple["Kind", ...]:
        """Return all kinds of a site, by its family."""
        if site not in self._known:
            found = kinds_for(
                self.names,
                causes=self.causes,
                site=site,
                named=self.named,
                intervals=self.intervals,
            )
            self._known[site] = tuple(dict.fromkeys((*found, *self.also)))
        return self._known[site]

    def first(self, site: str) -> tuple["Kind", ...]:
        """Return the kinds that one pass fills."""
        return tuple(kind for kind in self.of(site) if kind not in SECOND_PASS)

    def second(self, site: str) -> tuple["Kind", ...]:
        """Return the kinds that need to know the mean before they begin."""
        return tuple(kind for kind in self.of(site) if kind in SECOND_PASS)


@dataclass(frozen=True)
class ListenerOptions:
    """What a listener is told of rows, sinks and tokens."""

    sinks: float
    seed: int
    folded: bool | None = None
    sketched: bool = True
    gather: bool = False  # few rows of a class wait for more; whoever runs it finishes it
    bands: "Array | None" = None
    decode: Callable[[list[int]], str] | None = None

    def listener(
        self, take: "Take", spoil: Callable[[str, str], None], meet: "Meet | None" = None
    ) -> "Listener":
        """Return a listener; without `meet` its blocks are of whole variants."""
        from isoscope.capture.listener import Listener

        return Listener(
            take,
            spoil,
            meet,
            whole_variants=meet is None,
            times=self.sinks,
            seed=self.seed,
            folded=self.folded,
            sketched=self.sketched,
            gather=self.gather and meet is not None,
            bands=self.bands,
            decode=self.decode,
        )


def first_pass(survey: Survey, kinds: SiteKinds, options: ListenerOptions) -> "Listener":
    """Return a listener that sums what it hears into a survey."""

    def take(site: str, row_class: str, block: "TensorBlock") -> None:
        survey.update((site, row_class), kinds.first(site), block)

    def meet(site: str, variant: str, classes: "list[DocumentSums]") -> None:
        shape: tuple[int, ...] = classes[0].units.shape
        survey.meet((site, variant), classes, width=shape[1], folded=bool(options.folded))

    return options.listener(take, survey.spoil, meet)


def second_pass(survey: Survey, options: ListenerOptions) -> "Listener":
    """Return a listener that fills what `begin_second` has laid out."""

    def take(site: str, variant: str, block: "TensorBlock") -> None:
        for part in survey.held.get((site, variant), {}).values():
            part.update(block)

    return options.listener(take, survey.spoil)


def begin_second(before: "State", sites: Sequence[str], kinds: SiteKinds) -> Survey:
    """Return a survey of second passes, built from what the first has seen."""
    survey = Survey()
    for site in sites:
        for _, alike, here in variants(before.survey_of(site).held):
            place = (site, alike[0])
            survey.held[place] = second_passes(here, kinds.second(site))
    return survey
