"""Measures in training: penalties on hidden states, and watches of the geometry."""

from isoscope.errors import need_packages

need_packages("isoscope.control", ("torch",), "hf")  # before it is imported

# ruff: noqa: E402
from isoscope.control.penalty.isoscore_debiased import DebiasedIsotropy
from isoscope.control.penalty.isoscore_star import IStar, streamed
from isoscope.control.penalty.mean_cosine import CosReg, MeanCosine
from isoscope.control.penalty.penalty import Penalty, Schedule, cosine, linear
from isoscope.control.trainer.attach import attach
from isoscope.control.trainer.loop import PenaltyListener, penalised
from isoscope.control.watch.alert import (
    Alert,
    CosineRising,
    DeadDimensions,
    LossAtChance,
    RankFalling,
)
from isoscope.control.watch.tangents import Tangents
from isoscope.control.watch.watch import Watch

__all__ = [
    "Alert",
    "CosReg",
    "CosineRising",
    "DeadDimensions",
    "DebiasedIsotropy",
    "IStar",
    "LossAtChance",
    "MeanCosine",
    "Penalty",
    "PenaltyListener",
    "RankFalling",
    "Schedule",
    "Tangents",
    "Watch",
    "attach",
    "cosine",
    "linear",
    "penalised",
    "streamed",
]
