"""What was learnt, put back into training: penalties on hidden states, and watches."""

from isoscope.control.penalty.base import Penalty
from isoscope.control.penalty.cosreg import CosReg
from isoscope.control.penalty.isoscore_debiased import DebiasedIsotropy
from isoscope.control.penalty.isoscore_star import IStar
from isoscope.control.penalty.mean_cosine import MeanCosine
from isoscope.control.penalty.schedule import Schedule, cosine, linear
from isoscope.control.penalty.shrinkage import streamed
from isoscope.control.trainer.attach import attach
from isoscope.control.trainer.loop import Hearing, penalised
from isoscope.control.watch.alert import (
    Alert,
    CosineRising,
    DeadDimensions,
    LossAtChance,
    RankFalling,
)
from isoscope.control.watch.watch import Watch

__all__ = [
    "Alert",
    "CosReg",
    "CosineRising",
    "DeadDimensions",
    "DebiasedIsotropy",
    "Hearing",
    "IStar",
    "LossAtChance",
    "MeanCosine",
    "Penalty",
    "RankFalling",
    "Schedule",
    "Watch",
    "attach",
    "cosine",
    "linear",
    "penalised",
    "streamed",
]
