"""Sound files, a document each, mixed down to mono."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import DocumentError, SourceError
from isoscope.source.border import border, shown
from isoscope.source.corpus.document import Document
from isoscope.source.corpus.extra import needed
from isoscope.source.corpus.fault import SKIP, columns_given, too_large
from isoscope.source.corpus.files import Files
from isoscope.source.corpus.transcript import Transcripts
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.fingerprint import of_parts
from isoscope.types import Array

HIGHEST = 768_000  # samples a second, the most that converters offer
SHORTEST = 0.025  # seconds: one window of every speech model there is
MOST_SAMPLES = 1 << 28  # one GiB of float32
BLOCK = 1 << 16  # samples decoded at a time
WHAT = "audio"


class Audio(Files):
    """Sound files; headers are read when it is opened, samples when they are asked for."""

    def __init__(self, paths: Sequence[Path], root: Path | None, wanted: Wanted) -> None:
        super().__init__("audio", paths, root)
        for column in wanted.columns:
            raise columns_given(self.place, column)
        needed("soundfile", "audio", WHAT)
        kept: list[Path] = []
        for path in paths:
            try:
                with _opened(path):
                    kept.append(path)
            except DocumentError:
                if not wanted.skip_bad:
                    raise
                self.dropped.add("sound files that cannot be used", str(path))
        self.keep(kept)
        self._transcripts = Transcripts(kept, root)

    def document(self, ordinal: int) -> Document:
        """Decode one file."""
        path = self.path(ordinal)
        samples, rate = _decoded(path)
        return Document(self.id(ordinal), samples, self._transcripts.of(path), rate, str(path))

    def stamp(self) -> str:
        """Compute the fingerprint of the sound, and of the transcripts if there are any."""
        texts = self._transcripts.stamp()
        return super().stamp() if texts is None else of_parts([super().stamp(), texts])


def resampled(samples: Array, rate: int, wanted: int) -> Array:
    """Samples at another rate, as float32; the same array if it is the rate they have."""
    if rate == wanted:
        return samples
    soxr = needed("soxr", "audio", "audio at another rate")
    return np.asarray(soxr.resample(samples, rate, wanted), dtype=np.float32)


def _opened(path: Path) -> Any:
    """An open sound file whose header makes sense."""
    soundfile = needed("soundfile", "audio", WHAT)
    with border(str(path)), path.open("rb"):
        pass  # soundfile would not say why it cannot
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.SoundFileError, RuntimeError, TypeError, ValueError) as error:
        raise unreadable(path, str(error)) from error
    try:
        _check(path, file.samplerate, file.frames, file.channels)
    except SourceError:
        file.close()
        raise
    return file


def _check(path: Path, rate: int, frames: int, channels: int) -> None:
    if not 0 < rate <= HIGHEST:
        raise DocumentError(
            f"expected a rate from 1 to {HIGHEST} samples a second in {path}, got {rate}",
            hint=f"write it again with its true rate; {SKIP}",
            slug="audio-rate",
        )
    if channels < 1 or frames < 0:
        raise unreadable(path, f"{channels} channels of {frames} samples")
    if frames < SHORTEST * rate:
        raise too_short(path, frames, rate)


def _decoded(path: Path) -> tuple[Array, int]:
    """Samples in mono; memory grows with what is there, not with what the header claims."""
    pieces: list[Array] = []
    count = 0
    with _opened(path) as file:
        rate = int(file.samplerate)
        while True:
            try:
                block: Array = file.read(BLOCK, dtype="float32", always_2d=True)
            except (RuntimeError, ValueError) as error:
                raise unreadable(path, str(error)) from error
            if not len(block):
                break
            count += len(block)
            if count > MOST_SAMPLES:
                raise too_large(str(path), f"{MOST_SAMPLES} samples", "more")
            pieces.append(block.mean(axis=1, dtype=np.float32))
    samples = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.float32)
    if count < SHORTEST * rate:
        raise too_short(path, count, rate)
    if not np.isfinite(samples).all():
        raise unreadable(path, "samples that are not finite")
    return samples, rate


def unreadable(path: Path, reason: str) -> DocumentError:
    """Return the error for a file that is no sound."""
    plain = shown(reason.removeprefix(f"Error opening {str(path)!r}: ")).rstrip(". ").lower()
    return DocumentError(
        f"expected a sound file at {path}, got {plain!r}", hint=SKIP, slug="audio-unreadable"
    )


def too_short(path: Path, frames: int, rate: int) -> DocumentError:
    """Return the error for a sound shorter than one window of a model."""
    return DocumentError(
        f"expected {SHORTEST * 1000:g} ms of sound or more in {path}, "
        f"got {1000 * frames / rate:.1f} ms",
        hint=SKIP,
        slug="audio-short",
    )
