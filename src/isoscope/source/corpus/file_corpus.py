"""Corpora in which every file is a document."""

from collections.abc import Sequence
from pathlib import Path

from isoscope.source.corpus.corpus import Corpus, Kind
from isoscope.source.corpus.dropped import Dropped
from isoscope.source.fingerprint import of_file, of_parts


class Files(Corpus):
    """Files by name; a document is named as its file is, relative to the folder."""

    def __init__(self, kind: Kind, paths: Sequence[Path], root: Path | None) -> None:
        """Without a root there is one file, and it is the corpus."""
        place = paths[0] if root is None else root
        super().__init__(kind, place.name or place.resolve().name, str(place), Dropped())
        self._root = root
        self._paths = list(paths)

    def __len__(self) -> int:
        return len(self._paths)

    def id(self, ordinal: int) -> str:
        """Return the name of the file, with the folders on the way to it."""
        return file_id(self.path(ordinal), self._root)

    def path(self, ordinal: int) -> Path:
        """Return where a document lies."""
        return self._paths[self.within(ordinal)]

    def keep(self, paths: Sequence[Path]) -> None:
        """Keep only these files."""
        self._paths = list(paths)

    def stamp(self) -> str:
        """Compute the fingerprint of the files, and of the names ids are made of."""
        if self._root is None:
            return of_file(self._paths[0])
        return of_parts(
            each for path in self._paths for each in (file_id(path, self._root), of_file(path))
        )


def file_id(path: Path, root: Path | None) -> str:
    """The name of a file; bytes in it that are no UTF-8 are spelt out."""
    name = path.name if root is None else path.relative_to(root).as_posix()
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
