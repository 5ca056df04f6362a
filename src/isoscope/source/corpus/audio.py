"""Sound files, a document each, mixed down to mono, and their transcripts."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoscope.errors import DocumentError
from isoscope.source.bytes import FileBytes, RandomBytes, of_file, of_parts
from isoscope.source.corpus.corpus import CorpusRequest, Document, FileCorpus, import_extra
from isoscope.source.corpus.text_tables import (
    csv_header,
    json_fields,
    open_csv,
    open_jsonl,
    open_tsv,
    tsv_header,
)
from isoscope.source.corpus.texts import TextCorpus, TextFields, read_text, text_lines
from isoscope.source.file_errors import (
    SKIP,
    BadRecordError,
    border,
    decode_utf8,
    document_too_large,
    printable,
)
from isoscope.types import Array

if TYPE_CHECKING:
    import soundfile as sf

AUDIO = frozenset(
    {".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au", ".caf", ".w64"}
)
TABLES = (
    "transcripts.tsv",
    "transcripts.csv",
    "metadata.tsv",
    "metadata.csv",
    "metadata.jsonl",
)
LIST = ".trans.txt"  # as in LibriSpeech: the stem of a file, a space, the transcript
FILE = ("file_name", "file", "path", "filename", "audio", "id")
TRANSCRIPT = ("transcription", "transcript", "text", "sentence", "normalized_text")
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
    rate, frames, channels = file.samplerate, file.frames, file.channels
    try:
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
    except DocumentError:
        file.close()
        raise
    return file


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


class Transcripts:
    """Transcripts by sound file; tables are indexed, not kept."""

    def __init__(self, paths: Sequence[Path], root: Path | None) -> None:
        self._inside = root.resolve() if root is not None else None
        parents = {path.parent for path in paths}
        folders = {  # from that of a file up to the root
            folder
            for parent in parents
            for folder in (parent, *parent.parents)
            if folder.is_relative_to(root or parent)
        }
        self._tables: list[TextCorpus] = []
        self._found: dict[Path, tuple[int, int]] = {}  # table and ordinal, by path and stem
        self._siblings = [path for path in paths if self._sibling(path)]
        sounds = {_stem(path) for path in paths}
        for folder in sorted(folders):
            for table in self._tables_of(folder):
                at = len(self._tables)
                self._tables.append(table)
                for i in range(len(table)):
                    sound = _stem(folder / table.id(i))
                    if sound in sounds:
                        self._found[sound] = (at, i)

    def of(self, path: Path) -> str | None:
        """The transcript of a file, if there is one."""
        if beside := self._sibling(path):
            return read_text(beside).strip() or None
        if (place := self._found.get(_stem(path))) is None:
            return None
        table, ordinal = place
        return self._tables[table].document(ordinal).content

    def stamp(self) -> str | None:
        """Fingerprint of all transcripts, or None without any."""
        parts = [table.fingerprint for table in self._tables]
        parts += [of_file(beside) for path in self._siblings if (beside := self._sibling(path))]
        return of_parts(parts) if parts else None

    def _sibling(self, path: Path) -> Path | None:
        beside = path.with_suffix(".txt")
        return beside if self._is_inside(beside, path.parent) else None

    def _tables_of(self, folder: Path) -> Iterator[TextCorpus]:
        for name in TABLES:
            path = folder / name
            if not self._is_inside(path, folder) or not path.stat().st_size:
                continue
            if (table := _table(path)) is not None:
                yield table
        for path in sorted(folder.glob(f"*{LIST}")):
            if self._is_inside(path, folder):
                data = FileBytes(path, path.name)
                lines = text_lines(data)
                yield TextCorpus(data, lines, _parse_entry, "list", skip_bad=True)

    def _is_inside(self, path: Path, folder: Path) -> bool:
        return path.is_file() and path.resolve().is_relative_to(
            self._inside or folder.resolve()
        )


def is_companion(name: str) -> bool:
    """Whether a file in a folder of sounds holds transcripts."""
    return name in TABLES or name.endswith(LIST)


def _stem(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in AUDIO else path


def _table(path: Path) -> TextCorpus | None:
    """A table of files and transcripts; None if its columns are others."""
    data = FileBytes(path, path.name)
    open_table, read_columns = _OPENERS[path.suffix]
    columns = read_columns(data) or []
    file = next((each for each in FILE if each in columns), None)
    text = next((each for each in TRANSCRIPT if each in columns), None)
    if file is None and len(columns) == 2 and Path(columns[0]).suffix.lower() in AUDIO:
        file, text = "0", "1"  # two columns and no header
    if file is None or text is None:
        return None
    return open_table(data, CorpusRequest(column=text, id=file, skip_bad=True))


_Open = Callable[[RandomBytes, CorpusRequest], TextCorpus]
_OPENERS: dict[str, tuple[_Open, Callable[[RandomBytes], list[str] | None]]] = {
    ".tsv": (open_tsv, tsv_header),
    ".csv": (open_csv, csv_header),
    ".jsonl": (open_jsonl, json_fields),
}


def _parse_entry(raw: bytes) -> TextFields:
    stem, _, text = decode_utf8(raw).partition(" ")
    if not stem:
        raise BadRecordError("a line without a name")
    return TextFields(text, id=stem)
