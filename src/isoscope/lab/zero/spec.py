"""The spec of `isoscope zero`."""

from typing import TYPE_CHECKING, Annotated, ClassVar

from isoscope.engine import Notify
from isoscope.study.model import CorpusSpec, ModelSpec
from isoscope.study.option import about
from isoscope.study.plan import Packed, Plan, Unit
from isoscope.study.run import Live, Planner, Runnable

if TYPE_CHECKING:
    from isoscope.lab.zero.worker import ZeroedKL

FINAL = "final"


class Documents(Unit, frozen=True, tag=True):
    """One batch of documents, run as shipped and without each dimension."""

    first: int
    last: int  # exclusive


class ZeroPlan(Plan, frozen=True, kw_only=True):
    """Documents, and the dimensions that are zeroed."""

    stages: tuple[tuple[Documents, ...], ...]
    norms: tuple[str, ...]
    ordinals: Packed
    dimensions: tuple[int, ...]
    chosen: tuple[str, ...]  # how each was chosen
    shares: tuple[float | None, ...]
    d: int
    model: str

    def size(self, stage: int, unit: int) -> int | None:
        """Return the forward passes of a batch."""
        _ = stage, unit
        return 1 + len(self.dimensions)


class ZeroSpec(Runnable["ZeroedKL"], frozen=True, kw_only=True):
    """How far the output moves when one dimension of norms is zeroed."""

    command: ClassVar[str] = "zero"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = ZeroPlan

    load: ModelSpec
    read: CorpusSpec = CorpusSpec()
    dimensions: Annotated[
        tuple[int, ...] | None,
        about(
            "A dimension, from 0; repeat it for more",
            "N",
            flag="--dimension",
            default="by share of the cosine",
        ),
    ] = None
    norms: Annotated[
        tuple[str, ...],
        about(
            "final; a number N: all norms of the last N blocks; or a name, which may be "
            "repeated",
            "NORM",
            flag="--norm",
            default=FINAL,
            numbers=True,
        ),
    ] = (FINAL,)
    top: Annotated[
        int, about("Zero the N dimensions with the largest shares.", "N", least=0)
    ] = 3
    random: Annotated[int, about("Zero N random dimensions to compare with.", "N", least=0)] = 3
    documents: Annotated[int, about("Documents drawn from the corpus.", "N", least=1)] = 16
    length: Annotated[int, about("Tokens a document is cut to.", "N", least=2)] = 128
    batch: Annotated[int, about("Documents at once.", "N", least=1)] = 4
    seed: Annotated[
        int, about("Chooses documents and random dimensions.", "N", least=0, most=2**63 - 1)
    ] = 0

    def open(self, notify: Notify, live: Live | None = None) -> Planner["ZeroedKL"]:
        """Load the model and open the corpus."""
        from isoscope.study.model import need_torch

        need_torch("zero")
        from isoscope.lab.zero.worker import ZeroWorker

        return ZeroWorker(self, notify, live or {})
