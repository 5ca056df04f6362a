"""I(W) of the matrices of a model: input and output, raw and centred, tied or not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from isoscope.accumulate import Block, Moments, Partitions
from isoscope.capture.weight import tied
from isoscope.errors import UndefinedError
from isoscope.lab.plain import Plain
from isoscope.lab.subject import subject_of
from isoscope.measure.partition import as_published, log_two_sided, reference
from isoscope.measure.view import PartitionSums
from isoscope.registry import unknown
from isoscope.site import DECODER, EMBED, UNEMBED, Site
from isoscope.survey import block_rows
from isoscope.survey.read import second_passes
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

    def get(self, site: str, *, centred: bool = False) -> MatrixIsotropy:
        """Return one of them; a tied output matrix is the input matrix of its stack."""
        found = {each.site: each for each in self.matrices if each.centred == centred}
        if self.tied and site == UNEMBED:
            decoder = str(Site(EMBED, stack=DECODER))
            site = decoder if decoder in found else EMBED
        if site not in found:
            raise unknown("site", site, found)
        return found[site]


def matrix_isotropy(model: Any, *, against_random: bool = False, **given: Any) -> Matrices:
    """Return I(W) of every matrix a model has, raw and centred.

    `against_random` adds I of a random cloud with the same norms, which takes longer: I(W)
    depends on the scale of W, so a value by itself says little.
    """
    subject = subject_of(model, **given)
    weights = dict(subject.sites.weights)
    if not weights:
        raise UndefinedError(
            f"expected a matrix with a row for each token in {subject.loaded.name}, got none",
            hint="frames and patches are embedded by convolutions; read the site embed instead",
            slug="no-matrix",
        )
    one = tied(subject.loaded.model)
    if one:
        weights.pop(UNEMBED)
    found = [
        partition_of(matrix.float().cpu().numpy(), site, centred, against_random)
        for site, matrix in weights.items()
        for centred in (False, True)
    ]
    return Matrices(one, TIED if one else "", found)


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
    width = matrix.shape[1]
    first = Moments(width)
    step = block_rows(width)
    blocks = [
        Block(matrix[start : start + step], start=start)
        for start in range(0, len(matrix), step)
    ]
    for block in blocks:
        first.update(block)
    second = second_passes({Moments: first}, [Partitions])[Partitions]
    with threadpool_limits(1):
        for block in blocks:
            second.update(block)
    lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
    seen = PartitionSums(second.finalize(), lengths)
    log = log_two_sided(seen)
    draws = reference(seen) if against_random else []
    return MatrixIsotropy(
        site=site,
        centred=centred,
        rows=len(matrix),
        width=width,
        value=float(np.exp(log)),
        log_value=log,
        as_published=as_published(seen),
        reference=float(np.mean(draws)) if draws else None,
    )
