"""The spec of `isoscope zero`."""

from typing import Annotated, ClassVar

from isoscope.display import Results
from isoscope.engine.plan import Packed, Plan, Unit
from isoscope.lab.zero.results import ZeroedDimension
from isoscope.study.model import CorpusSpec, ModelSpec
from isoscope.study.option import about
from isoscope.study.run import Runnable

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
    chosen: tuple[str, ...]  # how each was chosen: "top", "random" or "given"
    shares: tuple[float | None, ...]
    d: int
    model: str

    def size(self, _stage: int, _unit: int, /) -> int | None:
        """Return the forward passes of a batch."""
        return 1 + len(self.dimensions)


class ZeroSpec(Runnable[Results[ZeroedDimension]], frozen=True, kw_only=True):
    """Measure how far the output distribution moves when one dimension of norms is zeroed.

    Without `dimensions`, those with the largest share of the mean cosine after the final norm
    are taken, with random ones beside them. Gain and bias are zeroed by hooks, in the final
    norm, in all norms of the last N blocks, or in those named: weights are untouched.
    """

    command: ClassVar[str] = "zero"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = ZeroPlan
    worker_at: ClassVar[str] = "isoscope.lab.zero.worker:ZeroWorker"
    torch_for: ClassVar[str] = "zero"

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
    length: Annotated[int, about("Cut documents to N tokens.", "N", least=2)] = 128
    batch: Annotated[int, about("At most N documents per batch.", "N", least=1)] = 4
    seed: Annotated[
        int, about("Chooses documents and random dimensions.", "N", least=0, most=2**63 - 1)
    ] = 0
