"""Sound files, a document each, mixed down to mono."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoscope.errors import DocumentError, SourceError
from isoscope.source.border import border, printable
from isoscope.source.corpus.corpus import Document
from isoscope.source.corpus.file_corpus import FileCorpus, import_extra
from isoscope.source.corpus.transcript import Transcripts
from isoscope.source.faults import SKIP, document_too_large
from isoscope.source.fingerprint import of_parts
from isoscope.source.request import CorpusRequest
from isoscope.types import Array

if TYPE_CHECKING:
    import soundfile as sf

HIGHEST = 768_000  # samples per second, the most that converters offer
SHORTEST = 0.025  # seconds: one window of any speech model
MOST_SAMPLES = 1 << 28  # one GiB of float32
BLOCK = 1 << 16  # samples decoded at a time


class AudioFiles(FileCorpus):
    """Sound files; headers are read on opening, samples on demand."""

    BAD = "sound files that cannot be used"

    def __init__(
        self, paths: Sequence[Path], root: Path | None, request: CorpusRequest
    ) -> None:
        super().__init__("audio", paths, root, request)
        self._transcripts = Transcripts(self._paths, root)

    def check(self, path: Path) -> str | None:
        """Read the header."""
        _open_sound(path).close()

    def document(self, ordinal: int) -> Document:
        """Decode one file."""
        path = self.path(ordinal)
        samples, rate = _decode_sound(path)
        return Document(self.id(ordinal), samples, self._transcripts.of(path), rate, str(path))

    def stamp(self) -> str:
        """Compute the fingerprint of the sound, and of the transcripts if there are any."""
        texts = self._transcripts.stamp()
        return super().stamp() if texts is None else of_parts([super().stamp(), texts])


def _open_sound(path: Path) -> "sf.SoundFile":
    """Open a sound file and check its header."""
    soundfile = import_extra("soundfile", "audio", "audio")
    with border(str(path)), path.open("rb"):
        pass  # soundfile would not say why it cannot be read
    try:
        file = soundfile.SoundFile(path)
    except (soundfile.SoundFileError, RuntimeError, TypeError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    try:
        _check_header(path, file.samplerate, file.frames, file.channels)
    except SourceError:
        file.close()
        raise
    return file


def _check_header(path: Path, rate: int, frames: int, channels: int) -> None:
    if not 0 < rate <= HIGHEST:
        raise DocumentError(
            f"expected a rate from 1 to {HIGHEST} samples per second in {path}, got {rate}",
            hint=f"write it again with its true rate; {SKIP}",
            slug="audio-rate",
        )
    if channels < 1 or frames < 0:
        raise _unreadable(path, f"{channels} channels of {frames} samples")
    if frames < SHORTEST * rate:
        raise _too_short(path, frames, rate)


def _decode_sound(path: Path) -> tuple[Array, int]:
    """Samples in mono; memory grows with the content, not with what the header claims."""
    pieces: list[Array] = []
    count = 0
    with _open_sound(path) as file:
        rate = int(file.samplerate)
        while True:
            try:
                block: Array = file.read(BLOCK, dtype="float32", always_2d=True)
            except (RuntimeError, ValueError) as error:
                raise _unreadable(path, str(error)) from error
            if not len(block):
                break
            count += len(block)
            if count > MOST_SAMPLES:
                raise document_too_large(str(path), f"{MOST_SAMPLES} samples")
            pieces.append(block.mean(axis=1, dtype=np.float32))
    samples = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.float32)
    if count < SHORTEST * rate:
        raise _too_short(path, count, rate)
    if not np.isfinite(samples).all():
        raise _unreadable(path, "samples that are not finite")
    return samples, rate


def _unreadable(path: Path, reason: str) -> DocumentError:
    plain = (
        printable(reason.removeprefix(f"Error opening {str(path)!r}: ")).rstrip(". ").lower()
    )
    return DocumentError(
        f"expected a sound file at {path}, got {plain!r}", hint=SKIP, slug="audio-unreadable"
    )


def _too_short(path: Path, frames: int, rate: int) -> DocumentError:
    return DocumentError(
        f"expected {SHORTEST * 1000:g} ms of sound or more in {path}, "
        f"got {1000 * frames / rate:.1f} ms",
        hint=SKIP,
        slug="audio-short",
    )
