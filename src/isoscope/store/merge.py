"""States of runs merged file to file: memory holds one place of two runs, never a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isoscope.errors import StoreError
from isoscope.site import is_matrix
from isoscope.store.run import Run
from isoscope.store.stream import StateWriter, first_reasons

if TYPE_CHECKING:
    from isoscope.accumulate.survey import Survey


Place = tuple[str, str]  # site, and class or variant


def merge_states(runs: Sequence[Run], out: Path) -> None:
    """Write the state of all runs together, a place at a time.

    A site that is in trouble in one of them is in trouble in the result, for the reason
    that the first of them gives.
    """
    trouble: dict[str, str] = {}
    for run in runs:
        trouble = first_reasons(trouble, run.trouble)
    holding: dict[Place, list[Run]] = {}
    for run in runs:
        for place in run.places:
            holding.setdefault(place, []).append(run)
    try:
        with StateWriter(out) as merged:
            for place, those in holding.items():
                if place[0] not in trouble:
                    merged.add(_merge_place(those, place, alone=len(runs) == 1))
            merged.note(trouble)
    except OSError as error:  # what goes wrong in reading is a StoreError already
        raise StoreError(
            f"cannot write a run in {str(out.parent.parent)!r}: {error.strerror or error}",
            hint="free some space, or choose another folder; what was there is untouched",
            slug="store-write",
        ) from error


def _merge_place(runs: Sequence[Run], place: Place, *, alone: bool) -> "Survey":
    """Return what runs have collected at a place, added up in their order."""
    from isoscope.accumulate.survey import SECOND_PASS, Survey

    if is_matrix(place[0]):  # it is in every run of the model, and counts once
        return runs[0].survey_at(place)
    total = Survey()
    for run in runs:
        part = run.survey_at(place)
        if not alone:  # second passes of runs started from different means: they do not add up
            for kind in SECOND_PASS:
                part.held[place].pop(kind, None)
        total.merge(part)
    return total
