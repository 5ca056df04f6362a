"""Readings of gradients: against each control, of halves, and of frequency bands."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from isoscope.accumulate import FREQUENCIES, GradientPieces, Gradients, GradientsSummary
from isoscope.accumulate.gradients import HALVES
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.measures import Measure
from isoscope.measures.isoscore_star import ZETA
from isoscope.measures.subspaces import chance
from isoscope.measures.tangent_anisotropy import CONTROLS
from isoscope.measures.view import Summaries, View
from isoscope.measures.view.gradients import (
    AgainstComplement,
    AgainstRandom,
    AgainstShuffled,
    ComplementScatters,
    RandomScatters,
    ShuffledEnergies,
    ShuffledScatters,
    TangentEnergies,
    TangentScatters,
    part_of,
    scatters_of,
)
from isoscope.types import Reading

COMPLEMENT, RANDOM, SHUFFLED = CONTROL_GROUPS = ("complement", "random", "shuffled")
ReadRecord = Callable[[Measure], list[Reading]]
P_VALUE = "p"  # the companion of a measure that is compared with random subspaces
# What each measure is read off, by the group of its reading.
VIEWS: Mapping[str, Mapping[str, type[View]]] = {
    "tangent-energy": {"": TangentEnergies, SHUFFLED: ShuffledEnergies},
    "tangent-energy-ratio": {
        COMPLEMENT: AgainstComplement,
        RANDOM: AgainstRandom,
        SHUFFLED: AgainstShuffled,
    },
    "tangent-anisotropy": {
        "": TangentScatters,
        COMPLEMENT: ComplementScatters,
        RANDOM: RandomScatters,
        SHUFFLED: ShuffledScatters,
    },
}


def read_grouped(
    record: Measure,
    summaries: Summaries,
    read: ReadRecord,
    options: Mapping[str, object],
) -> list[Reading]:
    """Return the readings of a measure; of gradients, also against each control.

    A control that cannot be had, such as a complement that is too small, is skipped.
    """
    if record.name not in VIEWS:
        return read(record)
    found: list[Reading] = []
    problem: TooFewRowsError | UndefinedError | None = None
    views = dict(VIEWS[record.name])
    if record.name == "tangent-energy":
        views |= _parts(summaries)
    if record.name == "tangent-anisotropy" and GradientPieces in summaries:
        views |= _pieces(summaries)
    for group, view in views.items():
        try:
            found += [replace(each, group=group) for each in read(replace(record, reads=view))]
        except (TooFewRowsError, UndefinedError) as error:
            problem = problem or error
    if not found and problem is not None:
        raise problem
    if found and record.beside:
        with suppress(TooFewRowsError, UndefinedError):
            value = _chance(record.name, summaries, options)
            name = f"{record.name}-{P_VALUE}"
            found.append(
                replace(
                    found[0],
                    group=RANDOM,
                    measure=name,
                    value=value,
                    low=None,
                    high=None,
                    warnings=(),
                )
            )
    return found


def _pieces(summaries: Summaries) -> dict[str, type[View]]:
    """Return the views of scatters of halves, and of frequency bands with rows."""
    seen = summaries.of(Gradients)
    return {
        **{HALVES[half]: scatters_of(half=half) for half in _halves(seen)},
        **{FREQUENCIES[band]: scatters_of(band=band) for band in seen.bands_seen},
    }


def _halves(seen: GradientsSummary) -> tuple[int, ...]:
    """Return both halves where both have rows."""
    return seen.halves_seen if len(seen.halves_seen) > 1 else ()


def _parts(summaries: Summaries) -> dict[str, type[View]]:
    """Return the views of halves and of frequency bands with rows, and of directions."""
    seen = summaries.of(Gradients)
    return {
        **{HALVES[half]: part_of(half=half) for half in _halves(seen)},
        **{FREQUENCIES[band]: part_of(band=band) for band in seen.bands_seen},
        **{direction_name(each): part_of(direction=each) for each in range(seen.rank)},
    }


def direction_name(number: int) -> str:
    """Return what the readings of a direction of the proxy are called.

    >>> direction_name(0)
    'direction 1'
    """
    return f"direction {number + 1}"


def _chance(name: str, summaries: Summaries, options: Mapping[str, object]) -> float:
    """Return the p-value against uniformly random subspaces, which are exchangeable."""
    seen = summaries.view(RandomScatters)
    zeta, controls = options.get("zeta", ZETA), options.get("controls", CONTROLS)
    assert isinstance(zeta, float) and isinstance(controls, int)
    drawn = seen.draws(zeta, controls)
    if name == "tangent-energy":
        return chance(seen.cloud.share(seen.basis), drawn.shares)
    return chance(seen.rise(zeta), drawn.rises)
