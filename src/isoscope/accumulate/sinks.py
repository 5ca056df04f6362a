"""The strongest sinks of a site: which token, where, and in which words it stands."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from isoscope.accumulate.base import Accumulator
from isoscope.accumulate.block import Block
from isoscope.dataclass import dataclass
from isoscope.hashing import hash_tuples
from isoscope.types import Array

KEPT = 32
WORD_BYTES, CONTEXT_BYTES = 48, 192
NO_TOKEN = -1


@dataclass(frozen=True)
class Sink:
    """One sink: its norm over the median norm of its document, and where it stands."""

    times: float
    position: int
    token: int | None  # id; None where rows are no tokens
    word: str
    context: str


@dataclass(frozen=True)
class SinksSummary:
    """The strongest sinks, the strongest first."""

    sinks: tuple[Sink, ...]
    rows: int  # how many sinks there are in all


class Sinks(Accumulator[SinksSummary]):
    """The sinks whose norm exceeds that of their document most: the same in any order.

    Of blocks whose rows are no sinks nothing is kept.
    """

    least = 0
    columns = ("times", "documents", "positions", "tokens", "words", "contexts")
    saved = ("sinks", *columns)
    totals = ("sinks",)
    sinks: int = 0

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.times = np.zeros(0)
        self.documents, self.positions = (np.zeros(0, dtype=np.uint64) for _ in range(2))
        self.tokens = np.zeros(0, dtype=np.int64)
        self.words = np.zeros((0, WORD_BYTES), dtype=np.uint8)
        self.contexts = np.zeros((0, CONTEXT_BYTES), dtype=np.uint8)

    def _add(self, block: Block) -> None:
        if block.sinks is None:
            return
        times, quote = block.sinks.times, block.sinks.quote
        chosen = _strongest(times, block.documents, block.positions)
        tokens = np.full(len(times), NO_TOKEN) if block.tokens is None else block.tokens
        # Rows that will not be kept are not decoded: most sinks are weaker than these.
        weakest = self.times[-1] if len(self.times) == KEPT else -np.inf
        quotes = [quote(int(row)) if times[row] >= weakest else ("", "") for row in chosen]
        self._blend(
            {
                "times": times[chosen].astype(np.float64),
                "documents": block.documents[chosen],
                "positions": block.positions[chosen].astype(np.uint64),
                "tokens": tokens[chosen].astype(np.int64),
                "words": as_bytes([word for word, _ in quotes], WORD_BYTES),
                "contexts": as_bytes([context for _, context in quotes], CONTEXT_BYTES),
            }
        )
        self.sinks += len(times)

    def _absorb(self, other: Self) -> None:
        self._blend(other._arrays())

    def _blend(self, theirs: Mapping[str, Array]) -> None:
        """Keep the strongest of ours and theirs."""
        both = {
            name: np.concatenate([getattr(self, name), theirs[name]]) for name in self.columns
        }
        kept = _strongest(both["times"], both["documents"], both["positions"])
        for name, column in both.items():
            setattr(self, name, column[kept])

    def finalize(self) -> SinksSummary:
        """Return the sinks, the strongest first."""
        return SinksSummary(
            tuple(
                Sink(
                    times=float(self.times[row]),
                    position=int(self.positions[row]),
                    token=None if self.tokens[row] == NO_TOKEN else int(self.tokens[row]),
                    word=as_text(self.words[row]),
                    context=as_text(self.contexts[row]),
                )
                for row in range(len(self.times))
            ),
            self.sinks,
        )


def _strongest(times: Array, documents: Array, positions: Array) -> Array:
    """Return which rows are kept; of equal ones their hash decides, not their order."""
    return np.lexsort((hash_tuples(documents, positions), -times))[:KEPT]


def as_bytes(texts: Sequence[str], room: int) -> Array:
    """Return texts as rows of bytes, cut where they do not fit."""
    out = np.zeros((len(texts), room), dtype=np.uint8)
    for row, text in enumerate(texts):
        raw = text.encode("utf-8", "replace")[:room]
        raw = raw.decode("utf-8", "ignore").encode()  # no half of a character
        out[row, : len(raw)] = np.frombuffer(raw, dtype=np.uint8)
    return out


def as_text(raw: Array) -> str:
    """Return the text of a row of bytes."""
    return bytes(raw).rstrip(b"\0").decode("utf-8", "replace")
