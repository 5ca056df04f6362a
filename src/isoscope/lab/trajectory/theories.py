"""Older theories, measured at a checkpoint: matrices by frequency, the hull, the final norm.

Gao and Bis: rare tokens are pushed along the negative mean hidden state, and all rows of a
matrix share a direction. Gao: this needs a hull of hidden states without the origin. Machina:
the final norm may undo or make it.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np

from isoscope.accumulate import Moments, Reservoir, accumulator_of
from isoscope.accumulate.row_bands import FREQUENCIES, frequency_bands
from isoscope.accumulate.survey import Accumulators, variants
from isoscope.blas import one_blas_thread
from isoscope.errors import TooFewRowsError, UndefinedError
from isoscope.lab.matrices.worker import partition_of
from isoscope.lab.norm.parameters import Affine, final_affines
from isoscope.lab.norm.worker import cosine_steps
from isoscope.lab.trajectory.hull import origin_in_hull
from isoscope.measures.interval import quantile
from isoscope.site import Site, is_matrix, last_of_stream
from isoscope.store.state import State
from isoscope.study.model import ModelSites
from isoscope.types import Array, Reading

PER_WIDTH = 4  # rows of a hull per dimension
NOT_SEEN = "frequency 0"  # tokens of the vocabulary that the documents do not have
WIDEST = 1024  # of rows whose hull is looked at: the linear program takes too long beyond


class Theories:
    """The readings of one checkpoint that no measure gives; problems are sentences."""

    def __init__(
        self,
        subject: ModelSites,
        state: State,
        counts: Array,
        sample: Callable[[str, int], Array],
    ) -> None:
        self.subject, self.state, self.counts = subject, state, counts
        self.sample = sample  # takes a site and a number of rows, and returns such rows
        self.found: list[Reading] = []
        self.problems: list[str] = []

    def read(self) -> "Theories":
        """Compute all of them, on one thread: eigenvalues change their last bits with more."""
        with one_blas_thread():
            self._matrices()
            self._hull()
            self._norms()
        return self

    # --- matrices -------------------------------------------------------------------------
    def _matrices(self) -> None:
        towards = self._mean_state()
        if towards is None:
            self.problems.append(
                "projection on the mean hidden state: the final states were not surveyed"
            )
        for site, weight in self.subject.sites.weights.items():
            matrix = weight.detach().float().cpu().numpy()
            if not np.isfinite(matrix).all():
                self.problems.append(f"{site} by frequency: it holds NaN or infinity")
                continue
            for centred, name in ((False, "partition"), (True, "partition-centred")):
                value = partition_of(matrix, site, centred)
                self._add(site, name, value.value, len(matrix), matrix.shape[1])
            self._bands(site, matrix.astype(np.float64), towards)

    def _bands(self, site: str, matrix: Array, towards: Array | None) -> None:
        counts = np.zeros(len(matrix))
        known = self.counts[: len(matrix)]
        counts[: len(known)] = known
        bands = frequency_bands(counts)
        groups: dict[str, Array] = {"": np.ones(len(matrix), dtype=bool)}
        groups[NOT_SEEN] = counts == 0
        for band, name in enumerate(FREQUENCIES):
            groups[name] = (bands == band) & (counts > 0)
        for name, here in groups.items():
            rows = matrix[here]
            if len(rows) < 2:
                continue
            self._rows_of_band(site, name, rows, towards)

    def _rows_of_band(self, site: str, group: str, rows: Array, towards: Array | None) -> None:
        n, d = rows.shape
        lengths = np.linalg.norm(rows, axis=1)
        energy = float(np.square(lengths).mean())
        mean = rows.mean(axis=0)
        self._add_mean(site, "row-norm", lengths, d, group)
        if energy > 0:
            self._add(site, "common-share", float(mean @ mean) / energy, n, d, group)
        if towards is not None and len(towards) == d:
            along = -(rows @ towards)
            self._add_mean(site, "away-projection", along, d, group)
            if (lengths > 0).all():
                self._add_mean(site, "away-cosine", along / lengths, d, group)

    def _mean_state(self) -> Array | None:
        """Return the direction of the mean of the final hidden states."""
        here = self._held(self._final_site())
        if here is None or Moments not in here:
            return None
        mean = accumulator_of(here, Moments).finalize().mean
        length = float(np.linalg.norm(mean))
        return mean / length if length > 0 else None

    # --- the hull -------------------------------------------------------------------------
    def _hull(self) -> None:
        site = self._final_site()
        here = self._held(site)
        if site is None or here is None or Reservoir not in here:
            self.problems.append("hull: the final states were not surveyed")
            return
        rows = accumulator_of(here, Reservoir).finalize().rows
        width = rows.shape[1]
        least = PER_WIDTH * width
        if width > WIDEST:
            self.problems.append(f"hull at {site}: width {width} is above {WIDEST}")
            return
        if len(rows) < least:
            rows = self.sample(site, least)
        try:
            found = origin_in_hull(rows[:least].astype(np.float64))
        except TooFewRowsError as problem:
            self.problems.append(f"hull at {site}: {problem.problem}")
            return
        n = found.rows
        self._add(site, "hull-has-origin", float(found.inside), n, width)
        self._add(site, "hull-margin", found.margin, n, width)
        self._add(site, "hull-if-isotropic", found.wendel, n, width)

    # --- the final norm -------------------------------------------------------------------
    def _norms(self) -> None:
        try:
            affines = final_affines(self.subject)
        except UndefinedError as problem:
            self.problems.append(f"final norm: {problem.problem}")
            return
        for site, (_, affine) in affines.items():
            self._norm(site, affine)

    def _norm(self, norm: str, affine: Affine) -> None:
        width = len(affine.gain)
        stack = Site.parse(norm).stack
        site = str(Site("norm", part="out", stack=stack))
        middle = str(Site("norm", part="mid", stack=stack))
        values: dict[str, float | None] = {
            "norm-gain": float(np.linalg.norm(affine.gain)),
            "norm-bias": None if affine.bias is None else float(np.linalg.norm(affine.bias)),
            "norm-ratio": affine.ratio,
            "norm-reference": affine.reference,
        }
        n = width
        here = self._held(middle)
        if here is not None and Reservoir in here and Moments in here:
            rows = accumulator_of(here, Reservoir).finalize().rows
            found = cosine_steps(rows, affine, accumulator_of(here, Moments).finalize())
            n = found.n
            values |= {
                "norm-cosine-before": found.normalised,
                "norm-cosine-gain": found.gain,
                "norm-cosine-bias": found.gain_and_bias,
                "norm-cosine-bias-alone": found.zero_mean,
            }
        for name, value in values.items():
            if value is not None and np.isfinite(value):
                self._add(site, name, value, n, width)

    # --- where things are -----------------------------------------------------------------
    def _final_site(self) -> str | None:
        """Return the site whose states become the output: the norm, or the last of the stream.

        Of an encoder-decoder it is that of the decoder, which has the output matrix.
        """
        sites = [each for each in self.state.sites if not is_matrix(each)]
        out = self.subject.site("norm", "out")
        return out if out in sites else last_of_stream(sites)

    def _held(self, site: str | None) -> Accumulators | None:
        """Return the accumulators of all rows of a site."""
        if site is None or site not in self.state.sites:
            return None
        for _, alike, here in variants(self.state.survey_of(site).held):
            if "all" in alike:
                return here
        return None

    def _add_mean(self, site: str, name: str, values: Array, d: int, group: str) -> None:
        """Add the mean of a number per row, with Student's interval over the rows."""
        n = len(values)
        mean = float(values.mean())
        reach = quantile(n - 1) * float(values.std(ddof=1)) / sqrt(n)
        self._add(site, name, mean, n, d, group, (mean - reach, mean + reach))

    def _add(
        self,
        site: str,
        name: str,
        value: float,
        n: int,
        d: int,
        group: str = "",
        around: tuple[float | None, float | None] = (None, None),
    ) -> None:
        low, high = around
        self.found.append(Reading("", site, "all", group, None, name, value, low, high, n, d))
