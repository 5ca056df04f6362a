"""The steps of a run that follows a series: what intervals are made of, and spectra.

Two steps read the same documents, so that their readings are off together: with the spread of
every reading the difference of any two of them has its interval, and no state is kept.
"""

from collections.abc import Iterable

import msgspec
import numpy as np

from isoscope.types import Array

Place = tuple[str, str, str]  # site, variant, measure


class Numbers(msgspec.Struct, frozen=True, array_like=True):
    """An array of doubles, or of whole numbers, as a file holds it."""

    kind: str  # "<f8" or "<u8"
    data: bytes

    @classmethod
    def of(cls, values: Iterable[float] | Array, kind: str = "<f8") -> "Numbers":
        """Pack numbers."""
        return cls(kind, np.asarray(values, dtype=kind).tobytes())

    @property
    def array(self) -> Array:
        """The numbers, read-only."""
        if self.kind not in ("<f8", "<u8"):
            raise ValueError(f"expected doubles or whole numbers, got {self.kind!r}")
        return np.frombuffer(self.data, dtype=self.kind)


class GroupParts(msgspec.Struct, frozen=True, kw_only=True):
    """What each group of documents adds to the error of one reading."""

    site: str
    variant: str
    measure: str
    keys: int  # which list of groups of its step
    parts: Numbers
    lost: int
    centre: float | None = None  # the value of the population as estimated, of plain readings
    correction: float = 0.0  # what was added to the reading for it


class SpectrumPoints(msgspec.Struct, frozen=True, kw_only=True):
    """Eigenvalues over their average at some ranks, of one site."""

    site: str
    rank: tuple[int, ...]
    value: tuple[float, ...]
    isotropic: tuple[float, ...]
    rows: float  # effective ones


class ConceptParts(msgspec.Struct, frozen=True, kw_only=True):
    """One direction of a tangent proxy, and the tokens at its ends with the words around."""

    site: str
    direction: int  # counted from 0
    variance: float  # share of the variance of the activations
    top: tuple[tuple[str, str], ...]
    bottom: tuple[tuple[str, str], ...]


class BasisParts(msgspec.Struct, frozen=True, kw_only=True):
    """The orthonormal directions of a site's own proxy at one step."""

    site: str
    rank: int
    basis: Numbers  # (d, rank), row by row

    @property
    def array(self) -> Array:
        """The directions, (d, rank)."""
        return self.basis.array.reshape(-1, max(self.rank, 1))


class StepParts(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a series: what its readings alone do not tell."""

    step: int
    name: str
    keys: tuple[Numbers, ...] = ()  # lists of groups, each once
    parts: tuple[GroupParts, ...] = ()
    spectra: tuple[SpectrumPoints, ...] = ()
    concepts: tuple[ConceptParts, ...] = ()
    bases: tuple[BasisParts, ...] = ()  # until the steps are compared


class MetricCurve(msgspec.Struct, frozen=True, kw_only=True):
    """A number per step that is not of the geometry: a loss, or what a user measured."""

    name: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


class SeriesParts(msgspec.Struct, frozen=True, kw_only=True):
    """All steps of a series, in order; what `series.msgpack` holds."""

    steps: tuple[StepParts, ...]
    metrics: tuple[MetricCurve, ...] = ()
    lines: tuple[dict[str, object], ...] = ()  # what was found of each curve, as printed

    def encode(self) -> bytes:
        """Return it as a file holds it."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def decode(cls, content: bytes) -> "SeriesParts":
        """Return what a file holds; ValueError where it is not what we write."""
        try:
            return msgspec.msgpack.decode(content, type=cls)
        except msgspec.MsgspecError as error:
            raise ValueError(f"it is no series: {error}") from error
