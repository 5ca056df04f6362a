"""What measures look at: summaries, arranged so that a group can be left out."""

from isoscope.measure.view.clusters import Clusters
from isoscope.measure.view.halves import Halves
from isoscope.measure.view.masses import Masses
from isoscope.measure.view.neighbours import FarNeighbours, Neighbours
from isoscope.measure.view.norms import NormMoments
from isoscope.measure.view.occurrences import Occurrences
from isoscope.measure.view.pairs import Pairs
from isoscope.measure.view.partition import PartitionSums
from isoscope.measure.view.sentences import SentenceSums
from isoscope.measure.view.spectrum import RawSpectrum, Spectrum
from isoscope.measure.view.summaries import Summaries
from isoscope.measure.view.types import TypeSums
from isoscope.measure.view.units import CentredUnits, Units

__all__ = [
    "CentredUnits",
    "Clusters",
    "FarNeighbours",
    "Halves",
    "Masses",
    "Neighbours",
    "NormMoments",
    "Occurrences",
    "Pairs",
    "PartitionSums",
    "RawSpectrum",
    "SentenceSums",
    "Spectrum",
    "Summaries",
    "TypeSums",
    "Units",
]
