"""Mergeable summaries of rows."""

from isoscope.accumulate.adjacent import Adjacent, AdjacentSummary
from isoscope.accumulate.bands import BandCells, BandCellsSummary, BandsSummary
from isoscope.accumulate.base import Accumulator, Kind, accumulator_of, merged
from isoscope.accumulate.block import ArrayBlock, Block
from isoscope.accumulate.concepts import Concept, Concepts
from isoscope.accumulate.copies import Copies, CopiesSummary
from isoscope.accumulate.directions import (
    CentredDirections,
    Directions,
    DirectionsSummary,
    contributions,
    cosine_over_pairs,
)
from isoscope.accumulate.gradients import (
    GradientPieces,
    GradientPiecesSummary,
    Gradients,
    GradientsSummary,
    ShuffledGradients,
)
from isoscope.accumulate.groups import Groups, GroupsSummary
from isoscope.accumulate.heads import (
    EarlyKeys,
    EarlyQueries,
    HeadVectorsSummary,
    Keys,
    MeansSummary,
    Queries,
    QueryScores,
    QueryScoresSummary,
)
from isoscope.accumulate.moments import Moments, MomentsSummary
from isoscope.accumulate.named_rows import NamedRow, NamedRows, NamedRowsSummary
from isoscope.accumulate.neighbourhoods import Neighbourhoods, NeighbourhoodsSummary
from isoscope.accumulate.norms import Norms, NormsSummary
from isoscope.accumulate.overlap import Overlap
from isoscope.accumulate.partitions import Partitions, PartitionsSummary
from isoscope.accumulate.reservoir import Reservoir, ReservoirSummary
from isoscope.accumulate.row_bands import FREQUENCIES, POSITIONS
from isoscope.accumulate.sentences import Sentences, SentencesSummary
from isoscope.accumulate.sinks import Sink, Sinks, SinksSummary
from isoscope.accumulate.sums import DocumentSums, RowNames
from isoscope.accumulate.tally import Tally, TallySummary
from isoscope.accumulate.vocabulary import Vocabulary, VocabularySummary

ACCUMULATORS: tuple[Kind, ...] = (
    Tally,
    Moments,
    Groups,
    Directions,
    CentredDirections,
    Norms,
    Reservoir,
    Copies,
    Partitions,
    Vocabulary,
    Sentences,
    BandCells,
    Sinks,
    Overlap,
    NamedRows,
    Adjacent,
    Queries,
    Keys,
    EarlyQueries,
    EarlyKeys,
    QueryScores,
    Gradients,
    ShuffledGradients,
    GradientPieces,
    Concepts,
    Neighbourhoods,
)

__all__ = [
    "ACCUMULATORS",
    "FREQUENCIES",
    "POSITIONS",
    "Accumulator",
    "Adjacent",
    "AdjacentSummary",
    "ArrayBlock",
    "BandCells",
    "BandCellsSummary",
    "BandsSummary",
    "Block",
    "CentredDirections",
    "Concept",
    "Concepts",
    "Copies",
    "CopiesSummary",
    "Directions",
    "DirectionsSummary",
    "DocumentSums",
    "EarlyKeys",
    "EarlyQueries",
    "GradientPieces",
    "GradientPiecesSummary",
    "Gradients",
    "GradientsSummary",
    "Groups",
    "GroupsSummary",
    "HeadVectorsSummary",
    "Keys",
    "Kind",
    "MeansSummary",
    "Moments",
    "MomentsSummary",
    "NamedRow",
    "NamedRows",
    "NamedRowsSummary",
    "Neighbourhoods",
    "NeighbourhoodsSummary",
    "Norms",
    "NormsSummary",
    "Overlap",
    "Partitions",
    "PartitionsSummary",
    "Queries",
    "QueryScores",
    "QueryScoresSummary",
    "Reservoir",
    "ReservoirSummary",
    "RowNames",
    "Sentences",
    "SentencesSummary",
    "ShuffledGradients",
    "Sink",
    "Sinks",
    "SinksSummary",
    "Tally",
    "TallySummary",
    "Vocabulary",
    "VocabularySummary",
    "accumulator_of",
    "contributions",
    "cosine_over_pairs",
    "merged",
]
