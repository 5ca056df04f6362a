"""What measures read: summaries, arranged so that a group of documents can be excluded."""

from isoscope.measures.view.clusters import Clusters
from isoscope.measures.view.neighbours import FarNeighbours, Neighbours, Pairs
from isoscope.measures.view.spectrum import Halves, RawSpectrum, Spectrum, isotropic_spectrum
from isoscope.measures.view.summaries import (
    CentredUnits,
    GroupView,
    Masses,
    NormMoments,
    PartitionSums,
    SentenceSums,
    Summaries,
    Units,
    View,
)
from isoscope.measures.view.token_types import Occurrences, TypeSums

__all__ = [
    "CentredUnits",
    "Clusters",
    "FarNeighbours",
    "GroupView",
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
    "View",
    "isotropic_spectrum",
]
