"""I(W) of the matrices of a model: input and output, raw and centred, tied or not."""

from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
import numpy as np

from isoscope.accumulate import Moments, Partitions
from isoscope.capture.matrices import are_tied
from isoscope.engine import Notify
from isoscope.engine.base import Scratch, Ticks
from isoscope.errors import UndefinedError
from isoscope.lab.matrices.spec import MatricesPlan, MatricesSpec, OneMatrix
from isoscope.lab.plain import Plain
from isoscope.measures.partition import as_published, log_two_sided, reference
from isoscope.measures.view import PartitionSums
from isoscope.registry import unknown
from isoscope.site import DECODER, EMBED, UNEMBED, Site
from isoscope.store.state import State
from isoscope.study.keywords import call
from isoscope.study.model import open_model
from isoscope.study.run import Finished, Live
from isoscope.study.spec import EngineOptions
from isoscope.study.survey import sum_matrix
from isoscope.types import Array

TIED = "tied: the output matrix is the input matrix, measured once"


@dataclass(frozen=True)
class MatrixIsotropy(Plain):
    """I(W) of one matrix, about the origin or about its mean."""

    site: str  # EMBED or UNEMBED, of one stack or of both
    centred: bool
    rows: int
    width: int
    value: float  # both signs of every eigenvector
    log_value: float  # where the value itself is too small for a number
    as_published: float  # one sign of each, the one the eigenvectors happen to have
    reference: float | None  # random rows of the same norms; None if not asked for


@dataclass(frozen=True)
class Matrices(Plain):
    """The matrices of a model."""

    tied: bool
    remark: str
    matrices: list[MatrixIsotropy]
    model: str = field(default="", metadata={"told": False})
    as_published: bool = field(default=False, metadata={"told": False})  # shown in tables

    def get(self, site: str, *, centred: bool = False) -> MatrixIsotropy:
        """Return one of them; a tied output matrix is the input matrix of its stack."""
        found = {each.site: each for each in self.matrices if each.centred == centred}
        if self.tied and site == UNEMBED:
            decoder = str(Site(EMBED, stack=DECODER))
            site = decoder if decoder in found else EMBED
        if site not in found:
            raise unknown("site", site, found)
        return found[site]


def matrix_isotropy(model: Any, **options: Any) -> Matrices:
    """Return I(W) of every matrix a model has, raw and centred.

    `against_random` adds I of a random cloud with the same norms, which takes longer: I(W)
    depends on the scale of W, so a value by itself says little.
    """
    return call(MatricesSpec, (model,), options, EngineOptions)


class MatricesWorker:
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

    def content(self) -> dict[str, str]:
        """Return nothing: what is found is not written to a folder."""
        return {}

    def plan(self) -> MatricesPlan:
        """Return two units per matrix; one that input and output share is measured once."""
        one = are_tied(self.subject.loaded.model)
        sites = [site for site in self.weights if not (one and site == UNEMBED)]
        units = [OneMatrix(site, centred) for site in sites for centred in (False, True)]
        name = self.subject.loaded.name
        return MatricesPlan(stages=(tuple(units),), tied=one, model=name)

    def enter(self, plan: object, stage: int, before: State | None) -> None:
        """Nothing to prepare."""

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> dict[str, object]:
        """Return I(W) of one matrix."""
        _ = scratch, ticks
        assert isinstance(unit, OneMatrix)
        matrix = self.weights[unit.site].detach().float().cpu().numpy()
        found = partition_of(matrix, unit.site, unit.centred, self.spec.against_random)
        return asdict(found)

    def finish(self, done: Finished) -> Matrices:
        """Return I(W) of every matrix."""
        plan = done.plan_as(MatricesPlan)
        found = msgspec.convert(done.records, list[MatrixIsotropy])
        remark = TIED if plan.tied else ""
        return Matrices(plan.tied, remark, found, plan.model, self.spec.as_published)


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
    survey = sum_matrix(matrix, site, (Moments,), (Partitions,))
    second = survey.held[site, "all"][Partitions]
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    seen = PartitionSums(**vars(second.finalize()), lengths=lengths)
    log = log_two_sided(seen)
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
