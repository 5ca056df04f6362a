"""The spec of `isoscope matrices`."""

from typing import Annotated, ClassVar

from isoscope.display import Results
from isoscope.engine.plan import Plan, Unit
from isoscope.lab.matrices.results import MatrixIsotropy
from isoscope.study.model import ModelSpec
from isoscope.study.option import about
from isoscope.study.run import Runnable


class OneMatrix(Unit, frozen=True, tag=True):
    """One matrix, about the origin or about its mean."""

    site: str
    centred: bool


class MatricesPlan(Plan, frozen=True, kw_only=True):
    """The matrices of a model."""

    stages: tuple[tuple[OneMatrix, ...], ...]
    tied: bool
    model: str


class MatricesSpec(Runnable[Results[MatrixIsotropy]], frozen=True, kw_only=True):
    """Measure how isotropic the rows of a model's matrices are: I(W), raw and centred.

    Two-sided unless `as_published`; records have both. `against_random` adds I of random rows
    with the same norms: I(W) depends on the scale of W, so a value by itself says little.
    """

    command: ClassVar[str] = "matrices"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = MatricesPlan
    worker_at: ClassVar[str] = "isoscope.lab.matrices.worker:MatricesWorker"
    torch_for: ClassVar[str] = "matrices"

    load: ModelSpec
    against_random: Annotated[
        bool, about("Also of random rows with the same norms; takes longer.")
    ] = False
    as_published: Annotated[bool, about("One-sided, as in the papers' code.")] = False
