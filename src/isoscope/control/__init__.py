"""What was learnt, put back into training: penalties on the geometry of hidden states."""

from isoscope.control.cosreg import CosReg
from isoscope.control.isoscore_debiased import DebiasedIsotropy
from isoscope.control.isoscore_star import IStar
from isoscope.control.mean_cosine import MeanCosine
from isoscope.control.penalty import Penalty
from isoscope.control.schedule import Schedule, cosine, linear
from isoscope.control.shrinkage import streamed

__all__ = [
    "CosReg",
    "DebiasedIsotropy",
    "IStar",
    "MeanCosine",
    "Penalty",
    "Schedule",
    "cosine",
    "linear",
    "streamed",
]
