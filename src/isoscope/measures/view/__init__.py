"""What measures look at: summaries, arranged so that a group can be left out."""

from isoscope.measures.view.clusters import Clusters
from isoscope.measures.view.halves import Halves
from isoscope.measures.view.masses import Masses
from isoscope.measures.view.neighbours import FarNeighbours, Neighbours
from isoscope.measures.view.norms import NormMoments
from isoscope.measures.view.occurrences import Occurrences
from isoscope.measures.view.pairs import Pairs
from isoscope.measures.view.partition import PartitionSums
from isoscope.measures.view.sentences import SentenceSums
from isoscope.measures.view.spectrum import RawSpectrum, Spectrum
from isoscope.measures.view.summaries import Summaries
from isoscope.measures.view.types import TypeSums
from isoscope.measures.view.units import CentredUnits, Units

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
