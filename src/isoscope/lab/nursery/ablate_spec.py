"""The spec of `isoscope nursery ablate`."""

from typing import Annotated, ClassVar

from isoscope.display import Results
from isoscope.engine.plan import Plan, Unit
from isoscope.lab.nursery.ablation import EffectLine
from isoscope.lab.nursery.spec import Shape, Training
from isoscope.study.option import about
from isoscope.study.run import Runnable


class AblationCell(Unit, frozen=True, tag=True):
    """One level of each factor, and one seed."""

    levels: tuple[str, ...]
    seed: int


class AblatePlan(Plan, frozen=True, kw_only=True):
    """Every cell from every seed."""

    stages: tuple[tuple[AblationCell, ...], ...]
    tokens: int  # that a cell takes, training and measuring together

    def size(self, stage: int, unit: int) -> int | None:
        """Return the tokens of a cell."""
        return self.tokens


class AblateSpec(Runnable[Results[EffectLine]], frozen=True, kw_only=True):
    """Train small models that differ in one ingredient each, and estimate what each does.

    Every combination of levels is trained from several seeds on a synthetic language, and its
    trajectory measured. Returns main effects and two-way interactions with intervals. With
    `output` a run folder is written; an unfinished one with the same options is resumed.
    """

    command: ClassVar[str] = "nursery ablate"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = AblatePlan
    worker_at: ClassVar[str] = "isoscope.lab.nursery.ablate_worker:AblateWorker"
    torch_for: ClassVar[str] = "a nursery"

    factors: Annotated[
        tuple[str, ...],
        about(
            "Ingredients: tie, norm, attention, frequency, rms, final-bias, objective, width; "
            "width=32:64 sets levels.",
            "F,F",
            commas=True,
        ),
    ] = ("tie", "norm", "attention", "frequency")
    seeds: Annotated[int, about("Seeds of each cell.", "N", least=1)] = 3
    shape: Shape = Shape(layers=4, width=64, vocabulary=512)
    train: Training = Training(
        steps=200, batch=32, length=64, learning_rate=3e-3, checkpoints=8
    )
    tokens: Annotated[
        int, about("Held-out tokens that are measured at every checkpoint.", "N", least=64)
    ] = 4096
    permutations: Annotated[
        int, about("Permute labels N times to count false alarms; 0 for none.", "N", least=0)
    ] = 200
