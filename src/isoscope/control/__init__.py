"""What was learnt, put back into training: penalties on hidden states, and watches."""

from isoscope.control.alert import (
    Alert,
    CosineRising,
    DeadDimensions,
    LossAtChance,
    RankFalling,
)
from isoscope.control.attach import attach
from isoscope.control.cosreg import CosReg
from isoscope.control.hearing import Hearing, penalised
from isoscope.control.isoscore_debiased import DebiasedIsotropy
from isoscope.control.isoscore_star import IStar
from isoscope.control.mean_cosine import MeanCosine
from isoscope.control.penalty import Penalty
from isoscope.control.schedule import Schedule, cosine, linear
from isoscope.control.shrinkage import streamed
from isoscope.control.watch import Watch

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
