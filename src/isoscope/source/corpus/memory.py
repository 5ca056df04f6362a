"""Texts that are in memory already."""

from collections.abc import Sequence

from isoscope.errors import SourceError
from isoscope.source.corpus.corpus import Corpus
from isoscope.source.corpus.document import Document
from isoscope.source.corpus.dropped import Dropped
from isoscope.source.corpus.fault import BadDocumentError, bad_document, columns_given
from isoscope.source.corpus.record import unicode
from isoscope.source.corpus.wanted import Wanted
from isoscope.source.fingerprint import of_parts

NAME = "memory"
PLACE = "the list of texts"


class Memory(Corpus):
    """A list of texts; the list is kept, not copied."""

    def __init__(self, texts: Sequence[str], wanted: Wanted) -> None:
        super().__init__("text", NAME, PLACE, Dropped())
        for column in wanted.columns:
            raise columns_given(PLACE, column)
        self._texts = texts
        self._kept: list[int] = []
        for i, text in enumerate(texts):
            place = f"{PLACE}, entry {i}"
            try:
                blank = not _checked(text, i).strip()
            except BadDocumentError as error:
                if not wanted.skip_bad:
                    raise bad_document(place, error) from error
                self.dropped.add("documents that cannot be read", place)
                continue
            if blank:
                self.dropped.add("empty documents", place)
            else:
                self._kept.append(i)

    def __len__(self) -> int:
        return len(self._kept)

    def id(self, ordinal: int) -> str:
        """Return the name of all lists, and the place in this one."""
        return f"{NAME}:{self._kept[self.within(ordinal)]}"

    def document(self, ordinal: int) -> Document:
        """Return one text."""
        at = self._kept[self.within(ordinal)]
        return Document(self.id(ordinal), self._texts[at], place=f"{PLACE}, entry {at}")

    def stamp(self) -> str:
        """Compute the fingerprint of all texts."""
        return of_parts(self._texts[at] for at in self._kept)


def _checked(text: object, at: int) -> str:
    if not isinstance(text, str):
        raise SourceError(
            f"expected a text in entry {at} of the list, got {type(text).__name__}",
            hint="give a list of strings, or the path of a file or folder",
            slug="corpus-kind",
        )
    return unicode(text)
