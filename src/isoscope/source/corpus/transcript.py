"""Transcripts of sound files: a text file beside each, or a table for a folder."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from isoscope.source.bytes import FileBytes, RandomBytes
from isoscope.source.corpus.plain_text import read_text, text_lines
from isoscope.source.corpus.tables import (
    csv_header,
    json_fields,
    open_csv,
    open_jsonl,
    open_tsv,
    tsv_header,
)
from isoscope.source.corpus.text_corpus import TextCorpus, TextFields, TextFormat
from isoscope.source.faults import BadRecordError, decode_utf8
from isoscope.source.fingerprint import of_file, of_parts
from isoscope.source.request import CorpusRequest

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


class Transcripts:
    """Transcripts by sound file; tables are indexed, not kept."""

    def __init__(self, paths: Sequence[Path], root: Path | None) -> None:
        self._inside = root.resolve() if root is not None else None
        folders = sorted({each for path in paths for each in _between(path, root)})
        self._tables: list[TextCorpus] = []
        self._found: dict[Path, tuple[int, int]] = {}  # table and ordinal, by path and stem
        self._siblings = [path for path in paths if self._sibling(path)]
        sounds = {_stem(path) for path in paths}
        for folder in folders:
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
                yield _list(path)

    def _is_inside(self, path: Path, folder: Path) -> bool:
        return path.is_file() and path.resolve().is_relative_to(
            self._inside or folder.resolve()
        )


def is_companion(name: str) -> bool:
    """Whether a file in a folder of sounds holds transcripts."""
    return name in TABLES or name.endswith(LIST)


def _between(path: Path, root: Path | None) -> Iterator[Path]:
    """The folders from that of a file up to the root."""
    for folder in path.parents:
        yield folder
        if root is None or folder == root:
            return


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


def _list(path: Path) -> TextCorpus:
    data = FileBytes(path, path.name)
    return TextCorpus(data, text_lines(data), TextFormat(_parse_entry, "list"), skip_bad=True)


def _parse_entry(raw: bytes) -> TextFields:
    stem, _, text = decode_utf8(raw).partition(" ")
    if not stem:
        raise BadRecordError("a line without a name")
    return TextFields(text, id=stem)
