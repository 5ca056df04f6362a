"""What is said in sound files: in a text file beside each, or in a table for a folder."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from isoscope.source.corpus.csv import heads, open_csv, open_tsv
from isoscope.source.corpus.fault import BadDocumentError
from isoscope.source.corpus.held import Held, OnDisk
from isoscope.source.corpus.jsonl import loaded, open_jsonl
from isoscope.source.corpus.lines import decoded, numbered
from isoscope.source.corpus.pieces import Fields, Layout, Pieces
from isoscope.source.corpus.suffix import AUDIO
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.corpus.whole import content
from isoscope.source.fingerprint import of_file, of_parts

TABLES = (
    "transcripts.tsv",
    "transcripts.csv",
    "metadata.tsv",
    "metadata.csv",
    "metadata.jsonl",
)
LIST = ".trans.txt"  # as LibriSpeech has them: the stem of a file, a space, what is said
FILE = ("file_name", "file", "path", "filename", "audio", "id")
SAID = ("transcription", "transcript", "text", "sentence", "normalized_text")


class Transcripts:
    """Transcripts by sound file; tables are indexed, not kept."""

    def __init__(self, paths: Sequence[Path], root: Path | None) -> None:
        self._inside = root.resolve() if root is not None else None
        folders = sorted({each for path in paths for each in _between(path, root)})
        self._tables: list[Pieces] = []
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
        """What is said in a file, if anything tells."""
        if beside := self._sibling(path):
            return content(beside).strip() or None
        if (place := self._found.get(_stem(path))) is None:
            return None
        table, ordinal = place
        return self._tables[table].document(ordinal).content

    def stamp(self) -> str | None:
        """Fingerprint of all that is said, or None where nothing is."""
        parts = [table.fingerprint for table in self._tables]
        parts += [of_file(beside) for path in self._siblings if (beside := self._sibling(path))]
        return of_parts(parts) if parts else None

    def _sibling(self, path: Path) -> Path | None:
        beside = path.with_suffix(".txt")
        return beside if self._is_inside(beside, path.parent) else None

    def _tables_of(self, folder: Path) -> Iterator[Pieces]:
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
    """Whether a file in a folder of sounds is there for what is said in them."""
    return name in TABLES or name.endswith(LIST)


def _between(path: Path, root: Path | None) -> Iterator[Path]:
    """The folders from that of a file up to the root."""
    for folder in path.parents:
        yield folder
        if root is None or folder == root:
            return


def _stem(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in AUDIO else path


def _table(path: Path) -> Pieces | None:
    """A table of files and what is said in them; None if it tells something else."""
    held = OnDisk(path)
    opened, names = _OPENERS[path.suffix]
    columns = names(held)
    file = next((each for each in FILE if each in columns), None)
    said = next((each for each in SAID if each in columns), None)
    if file is None and len(columns) == 2 and Path(columns[0]).suffix.lower() in AUDIO:
        file, said = "0", "1"  # two columns and no header
    if file is None or said is None:
        return None
    return opened(held, path.name, Wanted(column=said, id=file, skip_bad=True))


def _fields(held: Held) -> list[str]:
    for piece in numbered(held):
        try:
            value = loaded(piece.raw)
        except BadDocumentError:
            return []
        return list(value) if isinstance(value, dict) else []
    return []


_OPENERS = {
    ".tsv": (open_tsv, partial(heads, tabbed=True)),
    ".csv": (open_csv, partial(heads, tabbed=False)),
    ".jsonl": (open_jsonl, _fields),
}


def _list(path: Path) -> Pieces:
    held = OnDisk(path)
    layout = Layout(path.name, _listed, "list")
    return Pieces(held, numbered(held), layout, Wanted(skip_bad=True))


def _listed(raw: bytes) -> Fields:
    stem, _, said = decoded(raw).partition(" ")
    if not stem:
        raise BadDocumentError("a line without a name")
    return Fields(said, id=stem)
