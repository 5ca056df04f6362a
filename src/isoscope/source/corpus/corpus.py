"""The corpus: documents of one kind, loaded by ordinal, in any order, none kept in memory."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import DocumentError, SourceError
from isoscope.hashing import HEAD, content_key, numbered_documents, splitmix64, text_key
from isoscope.source.bytes import of_file, of_parts
from isoscope.source.file_errors import border, refuse_columns
from isoscope.types import Array, Document

Kind = Literal["text", "tokens", "audio", "image"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class CorpusRequest:
    """What a caller selects: columns, where documents are cut, how to treat bad ones."""

    column: str | None = None
    target: str | None = None
    id: str | None = None
    per: Literal["line", "file"] | None = None
    kind: Kind | None = None
    skip_bad: bool = False
    length: int = 512  # tokens per document of a plain stream of tokens
    label: str | None = None  # a column that accompanies the text and is fed to no model

    @property
    def text(self) -> str:
        """The column that holds the text."""
        return "text" if self.column is None else self.column

    @property
    def columns(self) -> list[str]:
        """The columns that were named, of any role."""
        named = (self.column, self.target, self.id, self.label)
        return [each for each in named if each is not None]

    @property
    def roles(self) -> tuple[str, str | None, str | None, str | None]:
        """The columns of text, target, id and label."""
        return self.text, self.target, self.id, self.label

    @property
    def stamp(self) -> str:
        """The options that decide which content is read."""
        return "\0".join([self.text, self.target or "", self.id or ""])


class Dropped(dict[str, tuple[int, str]]):
    """What was dropped from a corpus: by reason the number, and the place of the first."""

    def add(self, reason: str, place: str, count: int = 1) -> None:
        """Count something that is dropped."""
        before, first = self.get(reason, (0, place))
        self[reason] = (before + count, first)

    def merge(self, peer: "Dropped") -> None:
        """Add the counts of another part of the corpus."""
        for reason, (count, place) in peer.items():
            self.add(reason, place, count)

    def lines(self) -> list[str]:
        """One line for each reason."""
        return [
            f"{reason} skipped: {count} (first: {first})"
            for reason, (count, first) in self.items()
        ]


class Corpus(ABC):
    """Documents that are loaded on demand."""

    def __init__(self, kind: Kind, name: str, place: str) -> None:
        self.kind: Kind = kind
        self.name = name
        self.place = place
        self.dropped = Dropped()

    @abstractmethod
    def __len__(self) -> int: ...

    def id(self, ordinal: int) -> str:
        """Return the name of a document: its own, or that of the source and the ordinal."""
        return f"{self.name}:{self.within(ordinal)}"

    @abstractmethod
    def document(self, ordinal: int) -> Document:
        """Load one document."""

    @abstractmethod
    def stamp(self) -> str:
        """Compute the fingerprint."""

    def __iter__(self) -> Iterator[Document]:
        return (self.document(ordinal) for ordinal in range(len(self)))

    @property
    def warnings(self) -> list[str]:
        """What was dropped, one line for each reason."""
        return self.dropped.lines()

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the content, wherever it is stored."""
        return self.stamp()

    @property
    def has_ids(self) -> bool:
        """Whether documents are known by their ids, and not by their order and content."""
        return False

    def digests(self) -> Array:
        """Hashes of the first bytes of each document, (n,)."""
        return np.array([_digest(each.content) for each in self], dtype=np.uint64)

    def keys(self) -> Array:
        """Hashes that identify the documents, (n,): of ids, or of order and content.

        Without ids no name of a file is among them: renaming one draws the same documents.
        """
        return self._keys_once

    def key(self, ordinal: int) -> int:
        """Return the hash that identifies a document."""
        return int(self.keys()[self.within(ordinal)])

    @cached_property
    def _keys_once(self) -> Array:
        return self.id_keys() if self.has_ids else numbered_documents(self.digests())

    def id_keys(self) -> Array:
        """Hashes of the ids, (n,)."""
        n = len(self)
        return np.fromiter((text_key(self.id(i)) for i in range(n)), dtype=np.uint64, count=n)

    def order(self, seed: int) -> Array:
        """Ordinals in an order that depends on the seed and the keys alone."""
        return np.argsort(
            splitmix64(self.keys() ^ splitmix64(np.uint64(int(seed) % 2**64))), kind="stable"
        )

    def within(self, ordinal: int) -> int:
        """Return a valid ordinal, so that none counts from the end by mistake."""
        if not 0 <= ordinal < len(self):
            raise IndexError(f"{self.place} has documents 0 to {len(self) - 1}, not {ordinal}")
        return int(ordinal)


class CombinedCorpus(Corpus):
    """Several corpora of one kind, one after another: the files of a folder."""

    def __init__(self, parts: Sequence[Corpus], name: str, place: str) -> None:
        super().__init__(parts[0].kind, name, place)
        for part in parts:
            self.dropped.merge(part.dropped)
        self._parts = parts
        self._ends = list(accumulate(len(part) for part in parts))

    def __len__(self) -> int:
        return self._ends[-1]

    def id(self, ordinal: int) -> str:
        """Return the id in the part."""
        part, at = self._find(ordinal)
        return part.id(at)

    def document(self, ordinal: int) -> Document:
        """Load one document from its part."""
        part, at = self._find(ordinal)
        return part.document(at)

    @property
    def has_ids(self) -> bool:
        """Whether documents are known by their ids, as a column gives them."""
        return self._parts[0].has_ids

    def id_keys(self) -> Array:
        """Hashes of the ids, which some parts have stored."""
        return np.concatenate([part.id_keys() for part in self._parts])

    def digests(self) -> Array:
        """Hashes of the first bytes of each document, (n,)."""
        return np.concatenate([part.digests() for part in self._parts])

    def stamp(self) -> str:
        """Compute the fingerprint of the parts, in their order."""
        return of_parts(part.fingerprint for part in self._parts)

    def _find(self, ordinal: int) -> tuple[Corpus, int]:
        index = bisect_right(self._ends, self.within(ordinal))
        return self._parts[index], ordinal - (self._ends[index - 1] if index else 0)


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

    def digests(self) -> Array:
        """Hashes of the first bytes of each file, (n,)."""
        return np.array([content_key(self.head(path)) for path in self._paths], dtype=np.uint64)

    def head(self, path: Path) -> bytes:
        """Read the first bytes of a file."""
        with border(str(path)), path.open("rb") as file:
            return file.read(HEAD)

    def stamp(self) -> str:
        """Compute the fingerprint of the files, in their order."""
        if self._root is None:
            return of_file(self._paths[0])
        return of_parts(of_file(path) for path in self._paths)


def _digest(content: str | Array) -> np.uint64:
    if isinstance(content, str):
        return text_digest(content)
    return content_key(content.ravel()[:HEAD].tobytes())


def text_digest(text: str) -> np.uint64:
    """Hash of the first bytes of a text."""
    return content_key(text[:HEAD].encode("utf-8", "surrogatepass"))


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
