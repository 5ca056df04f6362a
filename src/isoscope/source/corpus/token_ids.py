"""Files of token ids: an npy array, a document per row or one long stream."""

from pathlib import Path

import numpy as np

from isoscope.errors import SourceError
from isoscope.hashing import hash_tuples
from isoscope.source.bytes import of_file
from isoscope.source.corpus.corpus import Corpus, CorpusRequest, Document
from isoscope.source.file_errors import border, refuse_columns
from isoscope.source.npy import ArrayHeader, check_size, map_array, map_blocks, read_header
from isoscope.types import Array

MOST = 1 << 31  # no vocabulary is larger
BLOCK = 1 << 20  # ids checked at a time
HASHED_IDS = 64  # of a document that its digest looks at


class TokenIds(Corpus):
    """Token ids of an npy file, which stays on disk."""

    def __init__(self, path: Path, name: str, request: CorpusRequest) -> None:
        super().__init__("tokens", name, str(path))
        refuse_columns(self.place, request.columns)
        self._path = path
        with border(self.place), path.open("rb") as stream:
            self._header = read_header(stream, self.place)
        shape = self._header.shape
        if self._header.dtype.kind not in "iu" or len(shape) not in (1, 2):
            size = " x ".join(map(str, shape)) or "a single number"
            raise SourceError(
                f"expected token ids in {self.place}, "
                f"got an array of {self._header.dtype} ({size})",
                hint="save whole numbers: (documents, length), or one long row; "
                "vectors are for isoscope measure",
                slug="token-array",
            )
        check_size(path, self._header, self.place)
        self._length = request.length if len(shape) == 1 else shape[1]
        if request.length < 1:
            raise SourceError(
                f"expected documents of 1 token or more, got {request.length}",
                hint="512 is usual",
                slug="token-length",
            )
        self._documents = -(-shape[0] // request.length) if len(shape) == 1 else shape[0]
        if self._documents and self._length:
            _check_ids(path, self._header, self.place)
        else:
            self._documents = 0

    def __len__(self) -> int:
        return self._documents

    def document(self, ordinal: int) -> Document:
        """Copy the ids of one document."""
        at = self.within(ordinal)
        check_size(self._path, self._header, self.place)
        whole, pages = map_array(self._path, self._header, place=self.place)
        ids = whole[at] if whole.ndim == 2 else whole[at * self._length :][: self._length]
        content = np.array(ids, dtype=np.int64)
        del whole, ids
        pages.close()
        return Document(self.id(at), content, place=f"{self.place}, row {at}")

    def digests(self) -> Array:
        """Hashes of the first ids of each document."""
        whole, pages = map_array(self._path, self._header, place=self.place)
        if whole.ndim == 1:  # the last document may be shorter than the others
            starts = np.arange(self._documents)[:, None] * self._length
            places = starts + np.arange(min(HASHED_IDS, self._length))
            there = places < len(whole)
            heads = np.where(there, whole[np.minimum(places, len(whole) - 1)], -1)
        else:
            heads = np.array(whole[:, :HASHED_IDS])
        del whole
        pages.close()
        return hash_tuples(*heads.astype(np.int64).astype(np.uint64).T)

    def stamp(self) -> str:
        """Compute the fingerprint of the file; the length of pieces is part of it."""
        cut = f"tokens {self._length}" if len(self._header.shape) == 1 else "tokens"
        return of_file(self._path, cut)


def _check_ids(path: Path, header: ArrayHeader, place: str) -> None:
    """Refuse what is not in any vocabulary; that of the model is checked later."""
    rows = BLOCK if len(header.shape) == 1 else max(1, BLOCK // header.shape[1])
    for start, block in map_blocks(path, header, rows, place=place):
        low, high = int(block.min()), int(block.max())
        if low < 0 or high >= MOST:
            bad = low if low < 0 else high
            row = start + int(np.argwhere(block == bad)[0][0])
            raise SourceError(
                f"expected token ids from 0 to 2^31 - 1 in {place}, got {bad} in row {row}",
                hint="cut padding off, or write documents of one length into one file each",
                slug="token-ids",
            )
