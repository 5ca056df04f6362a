"""Mergeable summaries of rows."""

from typing import Any

from isoscope.accumulate.base import Accumulator, merged
from isoscope.accumulate.block import Block
from isoscope.accumulate.copies import Copies, CopiesSummary
from isoscope.accumulate.directions import CentredDirections, Directions, DirectionsSummary
from isoscope.accumulate.groups import Groups, GroupsSummary
from isoscope.accumulate.keyed import Keyed
from isoscope.accumulate.moments import Moments, MomentsSummary
from isoscope.accumulate.norms import Norms, NormsSummary
from isoscope.accumulate.overlap import DocumentSums, Overlap, OverlapSummary
from isoscope.accumulate.partitions import Partitions, PartitionsSummary
from isoscope.accumulate.reservoir import Reservoir, ReservoirSummary
from isoscope.accumulate.tally import Tally, TallySummary

ACCUMULATORS: tuple[type[Accumulator[Any]], ...] = (
    Tally,
    Moments,
    Groups,
    Directions,
    CentredDirections,
    Norms,
    Reservoir,
    Copies,
    Partitions,
    Keyed,
    Overlap,
)

__all__ = [
    "ACCUMULATORS",
    "Accumulator",
    "Block",
    "CentredDirections",
    "Copies",
    "CopiesSummary",
    "Directions",
    "DirectionsSummary",
    "DocumentSums",
    "Groups",
    "GroupsSummary",
    "Keyed",
    "Moments",
    "MomentsSummary",
    "Norms",
    "NormsSummary",
    "Overlap",
    "OverlapSummary",
    "Partitions",
    "PartitionsSummary",
    "Reservoir",
    "ReservoirSummary",
    "Tally",
    "TallySummary",
    "merged",
]
