"""The causes of one site, from the accumulators of its classes of rows."""

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from isoscope.accumulate import Accumulator, merged
from isoscope.accumulate.bands import Bands, Crossing
from isoscope.accumulate.directions import Directions
from isoscope.accumulate.sinks import Sinks
from isoscope.accumulate.survey import Kind, Place
from isoscope.causes.attribution import attribute
from isoscope.causes.cause import Cause, causes
from isoscope.causes.cloud import BandedDirections, CloudSums
from isoscope.errors import StoreError
from isoscope.types import VARIANTS

NO_BANDS = "frequency and position are not explained: this run has no bands of tokens"
NO_COUNTS = "frequency is not explained: the tokens of this run were not counted"
Summaries = Mapping[Kind, Accumulator[object]]
A = TypeVar("A", bound=Accumulator[object])


def site_causes(
    held: Mapping[Place, Summaries], site: str, variant: str, run: str
) -> list[Cause]:
    """Return the causes of one site, in the order of attribution."""
    classes = {each: held[site, each] for each in VARIANTS[variant] if (site, each) in held}
    ordinary = [here for name, here in classes.items() if "sink" not in name]
    sinks = [here for name, here in classes.items() if "sink" in name]
    if not classes:  # vectors, matrices and pooled texts have no classes of rows
        ordinary = [held[site, "all"]] if (site, "all") in held else []
    pointing = _merge(ordinary, Directions)
    if pointing is None:
        raise StoreError(
            f"expected sums of directions at {site}, got a run without them",
            hint="measure again, with mean-cosine among the measures",
            slug="explain-without-directions",
        )
    seen = BandedDirections(pointing, _merge(ordinary, Bands), _merge(ordinary, Crossing))
    found = attribute(CloudSums.of(seen, _merge(sinks, Directions)))
    table = _merge(sinks, Sinks)
    return causes(
        found,
        table.finalize().sinks if table is not None else (),
        run=run,
        site=site,
        variant=variant,
        warnings=() if seen.has_frequencies else (NO_COUNTS if seen.has_bands else NO_BANDS,),
    )


def _merge(classes: Sequence[Summaries], kind: type[A]) -> A | None:
    """Return what the classes have seen together; None where one has not kept it."""
    if not classes or any(kind not in here for here in classes):
        return None
    return merged(cast(A, here[kind]) for here in classes)
