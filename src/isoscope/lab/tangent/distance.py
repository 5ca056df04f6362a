"""How far tokens lie from the centroid of their type, against how frequent the type is.

The claim: frequent tokens are pinned more tightly about their centroid than rare ones. It is
read off the sample of token types that the activations of the proxy keep.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from isoscope.accumulate import Vocabulary, VocabularySummary
from isoscope.accumulate.survey import variants
from isoscope.hashing import GROUPS
from isoscope.measures.interval import influences, quantile
from isoscope.site import Site
from isoscope.store.state import State
from isoscope.types import Array, Reading

MEASURE = "frequency-distance"
LEAST = 8  # types, and groups of types, below which there is no correlation
SITES = 4  # evenly spread, whose token types are kept


def sampled_sites(sites: Sequence[str]) -> tuple[str, ...]:
    """Return the streams whose token types are kept: a few, the first and last among them."""
    streams = [site for site in sites if Site.parse(site).family == "grad"]
    if not streams:
        return ()
    places = np.unique(np.linspace(0, len(streams) - 1, min(SITES, len(streams))).round())
    return tuple(streams[int(place)] for place in places)


def read_distances(state: State, counts: Array, run: str = "") -> Iterator[Reading]:
    """Yield the correlation at every site whose token types were kept."""
    for site in state.sites:
        for _, names, here in variants(state.survey_of(site).held):
            found = here.get(Vocabulary)
            if "all" not in names or not isinstance(found, Vocabulary) or not found.count:
                continue
            seen = found.finalize()
            value = correlate(seen, counts)
            if value is not None:
                yield Reading(
                    run=run,
                    site=site,
                    variant="all",
                    group="",
                    step=None,
                    measure=MEASURE,
                    value=value[0],
                    low=value[1],
                    high=value[2],
                    n=len(seen.rows),
                    d=seen.rows.shape[1],
                )


def correlate(seen: VocabularySummary, counts: Array) -> tuple[float, float, float] | None:
    """Return Pearson's r of log frequency and distance, with its interval over types.

    A centroid of m occurrences is pulled towards each of them: squared distances are taken
    times m / (m - 1), else rare types would look close to their own. None for few types.
    """
    logs, distances, groups = _occurrences(seen, counts)
    kinds = np.unique(groups)
    if len(kinds) < LEAST or np.ptp(logs) == 0 or np.ptp(distances) == 0:
        return None
    value = float(np.corrcoef(logs, distances)[0, 1])
    without = np.array(
        [np.corrcoef(logs[groups != kind], distances[groups != kind])[0, 1] for kind in kinds]
    )
    if not np.isfinite(without).all():
        return None
    parts = influences(value, without, np.bincount(groups)[kinds].astype(np.float64))
    reach = quantile(len(kinds) - 1) * float(np.sqrt(parts @ parts))
    return value, max(value - reach, -1.0), min(value + reach, 1.0)


def _occurrences(seen: VocabularySummary, counts: Array) -> tuple[Array, Array, Array]:
    """Return log frequency, distance and group of every kept occurrence of repeated types."""
    owners = np.asarray(seen.owners, dtype=np.int64)
    sizes = np.bincount(owners, minlength=len(seen.tokens))
    rows = np.asarray(seen.rows, dtype=np.float64)
    sums = np.zeros((len(seen.tokens), rows.shape[1]))
    np.add.at(sums, owners, rows)
    chosen = (sizes[owners] > 1) & (seen.tokens[owners] < len(counts))
    own = owners[chosen]
    off = rows[chosen] - sums[own] / sizes[own][:, None]
    distances = np.sqrt(np.vecdot(off, off) * sizes[own] / (sizes[own] - 1))
    logs = np.log(np.maximum(counts[seen.tokens[own]], 1.0))
    return logs, distances, (seen.hashes[own] % np.uint64(GROUPS)).astype(np.int64)
