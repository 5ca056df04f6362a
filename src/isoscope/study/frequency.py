"""How often each token occurs in what is run, and the frequency band of each token."""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np

from isoscope.accumulate.row_bands import frequency_bands
from isoscope.errors import ConfigError, SourceError
from isoscope.types import Array

if TYPE_CHECKING:
    from isoscope.capture.model.tokenizer import Tokenizer

TOKENS = ("input_ids", "decoder_input_ids")  # what holds tokens among a model's inputs
_LEAST = 0.5  # of the tokens of a table that its tokenizer must know
_LARGEST = 1 << 28  # bytes of a table


class Frequencies:
    """Counts of tokens: of the documents that are run, or from a table."""

    def __init__(self, table: Array | None = None) -> None:
        self.is_table = table is not None
        self.counts = np.zeros(0, dtype=np.int64) if table is None else table

    def see(self, inputs: Mapping[str, Array]) -> None:
        """Count the tokens of a document, unless the counts come from a table."""
        for name in TOKENS:
            if name in inputs and not self.is_table:
                seen = np.bincount(np.asarray(inputs[name]).reshape(-1))
                if len(seen) > len(self.counts):
                    self.counts = np.pad(self.counts, (0, len(seen) - len(self.counts)))
                self.counts[: len(seen)] += seen

    def bands(self) -> Array | None:
        """Return the band of every token; None where there are no tokens."""
        return frequency_bands(self.counts) if len(self.counts) else None

    @property
    def digest(self) -> str:
        """What identifies these counts."""
        return blake2b(np.ascontiguousarray(self.counts).data, digest_size=16).hexdigest()


def read_frequencies(
    path: str | Path, tokenizer: "Tokenizer | None", vocabulary: int
) -> Frequencies:
    """Read a table of counts: npy with one number per token id, or a json object of tokens."""
    file = Path(path)
    if not file.is_file():
        raise SourceError(
            f"no such frequency table: {str(path)!r}",
            hint="name an npy file with a count per token id, or a json object of counts",
            slug="file-missing",
        )
    if file.stat().st_size > _LARGEST:
        raise ConfigError(
            f"expected a frequency table of at most {_LARGEST >> 20} MiB, got more",
            hint="it holds one number for each token of the vocabulary",
            slug="frequency-table",
        )
    counts = _array(file) if file.suffix == ".npy" else _object(file, tokenizer, vocabulary)
    if not np.isfinite(counts).all() or (counts < 0).any() or not counts.any():
        raise _unreadable(file)
    if len(counts) != vocabulary:
        raise ConfigError(
            f"expected counts of {vocabulary} tokens, got {len(counts)}",
            hint="the table is of another tokenizer; count with that of this model, or without "
            "--frequencies the corpus is counted",
            slug="frequency-table",
        )
    return Frequencies(counts)


def _array(file: Path) -> Array:
    try:
        counts = np.asarray(cast(object, np.load(file, allow_pickle=False)))
    except (OSError, ValueError, EOFError):
        raise _unreadable(file) from None
    if counts.ndim != 1 or counts.dtype.kind not in "iuf":
        raise _unreadable(file)
    return counts.astype(np.float64)


def _object(file: Path, tokenizer: "Tokenizer | None", vocabulary: int) -> Array:
    try:
        named = msgspec.json.decode(file.read_bytes(), type=dict[str, float], strict=False)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise _unreadable(file) from None
    known = {} if tokenizer is None else dict(tokenizer.get_vocab())
    there = {known[token]: count for token, count in named.items() if token in known}
    if len(there) < _LEAST * len(named) or not there:
        raise ConfigError(
            f"expected counts of tokens that this model knows, got {len(there)} known "
            f"of {len(named)}",
            hint="the table is of another tokenizer; without --frequencies the corpus is "
            "counted",
            slug="frequency-table",
        )
    counts = np.zeros(max(vocabulary, max(there) + 1))
    counts[list(there)] = list(there.values())
    return counts


def _unreadable(file: Path) -> ConfigError:
    return ConfigError(
        f"expected counts of tokens in {file.name}, got something else",
        hint="name an npy file with a count per token id, or a json object such as "
        '{"the": 1200, "of": 800}',
        slug="frequency-table",
    )
