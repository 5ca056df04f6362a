"""Corpora in which every file is a document."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from isoscope.errors import DocumentError, SourceError
from isoscope.source.corpus.corpus import Corpus
from isoscope.source.faults import refuse_columns
from isoscope.source.fingerprint import of_file, of_parts
from isoscope.source.request import CorpusRequest, Kind


class FileCorpus(Corpus):
    """Files by name; a document has the name of its file, relative to the folder."""

    BAD = "documents that cannot be read"

    def __init__(
        self, kind: Kind, paths: Sequence[Path], root: Path | None, request: CorpusRequest
    ) -> None:
        """Without a root there is one file, and it is the corpus."""
        place = paths[0] if root is None else root
        super().__init__(kind, place.name or place.resolve().name, str(place))
        refuse_columns(self.place, request.columns)
        self._root = root
        self._paths: list[Path] = []
        for path in paths:
            try:
                reason = self.check(path)
            except DocumentError:
                if not request.skip_bad:
                    raise
                reason = self.BAD
            if reason is None:
                self._paths.append(path)
            else:
                self.dropped.add(reason, str(path))

    def check(self, path: Path) -> str | None:
        """Return why a file is dropped, if it is; raise DocumentError for a bad one."""
        return None

    def __len__(self) -> int:
        return len(self._paths)

    def id(self, ordinal: int) -> str:
        """Return the name of the file, with the folders on the way to it."""
        return file_id(self.path(ordinal), self._root)

    def path(self, ordinal: int) -> Path:
        """Return the path of a document."""
        return self._paths[self.within(ordinal)]

    def stamp(self) -> str:
        """Compute the fingerprint of the files, and of the names that ids consist of."""
        if self._root is None:
            return of_file(self._paths[0])
        return of_parts(
            each for path in self._paths for each in (file_id(path, self._root), of_file(path))
        )


def file_id(path: Path, root: Path | None) -> str:
    """The name of a file; bytes in it that are not UTF-8 are written as escapes."""
    name = path.name if root is None else path.relative_to(root).as_posix()
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def import_extra(package: str, extra: str, what: str) -> ModuleType:
    """Import a package of an extra, or raise an error that says how to install it."""
    try:
        return import_module(package)
    except (ImportError, OSError) as error:  # OSError: the C library behind it is missing
        raise SourceError(
            f"cannot read {what} without {package}",
            hint=f"pip install 'isoscope[{extra}]'",
            slug="package-missing",
        ) from error
