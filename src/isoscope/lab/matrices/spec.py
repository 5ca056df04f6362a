"""The spec of `isoscope matrices`."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from isoscope.engine import Notify
from isoscope.study.model import ModelSpec
from isoscope.study.option import about
from isoscope.study.plan import Plan, Unit
from isoscope.study.run import Live, Planner, Runnable

if TYPE_CHECKING:
    from isoscope.lab.matrices.worker import Matrices


class OneMatrix(Unit, frozen=True, tag=True):
    """One matrix, about the origin or about its mean."""

    site: str
    centred: bool


class MatricesPlan(Plan, frozen=True, kw_only=True):
    """The matrices of a model."""

    stages: tuple[tuple[OneMatrix, ...], ...]
    tied: bool
    model: str


class MatricesSpec(Runnable["Matrices"], frozen=True, kw_only=True):
    """I(W) of the embedding matrices."""

    command: ClassVar[str] = "matrices"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = MatricesPlan

    load: ModelSpec
    against_random: Annotated[
        bool, about("Also of random rows with the same norms; takes longer.")
    ] = False
    as_published: Annotated[bool, about("One-sided, as in the papers' code.")] = False

    def open(self, notify: Notify, live: Live | None = None) -> Planner["Matrices"]:
        """Load the model."""
        from isoscope.study.model import need_torch

        need_torch("matrices")
        from isoscope.lab.matrices.worker import MatricesWorker

        return MatricesWorker(self, notify, live or {})
