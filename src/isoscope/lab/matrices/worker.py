"""I(W) of the matrices of a model: input and output, raw and centred, tied or not."""

from dataclasses import replace
from functools import partial

import msgspec
import numpy as np

from isoscope.accumulate import Moments, Partitions
from isoscope.capture.sites import are_tied
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import UndefinedError
from isoscope.lab.matrices.results import (
    MATRICES,
    ONE_SIDED,
    TIED,
    MatrixIsotropy,
    matrix_tables,
)
from isoscope.lab.matrices.spec import MatricesPlan, MatricesSpec, OneMatrix
from isoscope.measures.partition import as_published, log_ratio, reference
from isoscope.measures.view import PartitionSums
from isoscope.site import UNEMBED
from isoscope.study.model import open_model
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.survey import sum_matrix
from isoscope.types import Array


class MatricesWorker(Planner[Results[MatrixIsotropy]]):
    """A loaded model."""

    def __init__(self, spec: MatricesSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        self.subject = open_model(spec.load, live=live.get("model"), say=notify.say)
        self.weights = dict(self.subject.sites.weights)
        if not self.weights:
            name = self.subject.loaded.name
            raise UndefinedError(
                f"expected a matrix with a row for each token in {name}, got none",
                hint="frames and patches are embedded by convolutions; read the site embed "
                "instead",
                slug="no-matrix",
            )

    def plan(self) -> MatricesPlan:
        """Return two units per matrix; one that input and output share is measured once."""
        one = are_tied(self.subject.loaded.model)
        sites = [site for site in self.weights if not (one and site == UNEMBED)]
        units = [OneMatrix(site, centred) for site in sites for centred in (False, True)]
        return MatricesPlan(stages=(tuple(units),), tied=one, model=self.subject.loaded.name)

    def run(self, unit: object, _scratch: Scratch, _ticks: Ticks, /) -> MatrixIsotropy:
        """Return I(W) of one matrix."""
        assert isinstance(unit, OneMatrix)
        matrix = self.weights[unit.site].detach().float().cpu().numpy()
        return partition_of(matrix, unit.site, unit.centred, self.spec.against_random)

    def finish(self, done: Finished) -> Results[MatrixIsotropy]:
        """Return I(W) of every matrix."""
        plan, published = done.plan_as(MatricesPlan), self.spec.as_published
        return Results(
            msgspec.convert(done.records, list[MatrixIsotropy]),
            replace(MATRICES, tables=partial(matrix_tables, as_published=published)),
            shared={"model": plan.model, "tied": plan.tied},
            remarks=[*([TIED] if plan.tied else []), *([ONE_SIDED] if published else [])],
        )


def partition_of(
    matrix: Array, site: str = "rows", centred: bool = False, against_random: bool = False
) -> MatrixIsotropy:
    """Return I(W) of a matrix whose rows are vectors."""
    if not np.isfinite(matrix).all():
        raise UndefinedError(
            f"expected numbers in {site}, got NaN or infinity",
            hint="the weights are damaged; load the model again",
            slug="no-matrix",
        )
    if centred:
        matrix = matrix - matrix.mean(axis=0, dtype=np.float64)
    second = sum_matrix(matrix, site, (Moments,), (Partitions,)).held[site, "all"][Partitions]
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    seen = PartitionSums(**vars(second.finalize()), lengths=lengths)
    log = log_ratio(seen)
    draws = reference(seen) if against_random else []
    return MatrixIsotropy(
        site=site,
        centred=centred,
        rows=len(matrix),
        width=matrix.shape[1],
        value=float(np.exp(log)),
        log_value=log,
        as_published=as_published(seen),
        reference=float(np.mean(draws)) if draws else None,
    )
