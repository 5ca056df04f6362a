"""What the directions of a proxy are about: their tokens, from a state or from a saved run."""

from collections.abc import Iterable, Iterator

from isoscope.accumulate import Concepts
from isoscope.accumulate.concepts import ConceptToken
from isoscope.accumulate.survey import Survey
from isoscope.store import Run
from isoscope.store.series import ConceptParts, SeriesParts


def concepts_of(survey: Survey) -> Iterator[ConceptParts]:
    """Yield the directions of all sites of a survey."""
    for (site, _), here in survey.held.items():
        found = here.get(Concepts)
        if isinstance(found, Concepts):
            for number, each in enumerate(found.finalize()):
                top, bottom = (_quotes(end) for end in each.ends)
                yield ConceptParts(
                    site=site, direction=number, variance=each.variance, top=top, bottom=bottom
                )


def _quotes(end: Iterable[ConceptToken]) -> tuple[tuple[str, str], ...]:
    return tuple((each.word, each.context) for each in end)


def concepts_of_run(run: Run) -> dict[int | None, tuple[ConceptParts, ...]]:
    """Return the directions of a saved run by step; of one model the step is None."""
    if run.series is not None:
        return {each.step: each.concepts for each in SeriesParts.decode(run.series).steps}
    found = (each for site in run.sites for each in concepts_of(run.survey_of(site)))
    return {None: tuple(found)}
