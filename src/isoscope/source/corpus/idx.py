"""idx: the format of MNIST, many grey images in one file."""

from math import prod
from pathlib import Path

import numpy as np

from isoscope.errors import SourceError
from isoscope.source.border import border, damaged, truncated
from isoscope.source.corpus.corpus import Corpus
from isoscope.source.corpus.document import Document
from isoscope.source.corpus.dropped import Dropped
from isoscope.source.corpus.fault import columns_given
from isoscope.source.corpus.held import Held, OnDisk, Spooled, unpacked_pieces
from isoscope.source.corpus.image import MOST_PIXELS, too_many_pixels
from isoscope.source.corpus.wanted import Wanted

HEADER = 16
KIND = "an idx file of images"


class Idx(Corpus):
    """The images of an idx file, which are read one by one."""

    def __init__(self, path: Path, name: str, wanted: Wanted) -> None:
        super().__init__("image", name, str(path), Dropped())
        for column in wanted.columns:
            raise columns_given(self.place, column)
        if path.suffix.lower() == ".gz":
            self._held, self._shape = _unpacked(path, self.place)
        else:
            self._held, self._shape = _mapped(path, self.place)
        if prod(self._shape[1:]) == 0:
            self._shape = (0, 0, 0)

    def __len__(self) -> int:
        return self._shape[0]

    def id(self, ordinal: int) -> str:
        """Return the name of the file and the place in it."""
        return f"{self.name}:{self.within(ordinal)}"

    def document(self, ordinal: int) -> Document:
        """Read one image, grey as three equal colours."""
        at = self.within(ordinal)
        _, height, width = self._shape
        raw = self._held.read(HEADER + at * height * width, height * width)
        grey = np.frombuffer(raw, dtype=np.uint8).reshape(height, width, 1)
        return Document(
            self.id(at), np.repeat(grey, 3, axis=2), place=f"{self.place}, image {at}"
        )

    def stamp(self) -> str:
        """Compute the fingerprint of what is in the file, packed or not."""
        return self._held.stamp("idx")


def _mapped(path: Path, place: str) -> tuple[Held, tuple[int, int, int]]:
    held = OnDisk(path)
    with border(place), held.open() as stream:
        shape = _shape(stream.read(HEADER), place)
        size = path.stat().st_size
    if size != HEADER + prod(shape):
        raise truncated(place, HEADER + prod(shape), size)
    return held, shape


def _unpacked(path: Path, place: str) -> tuple[Held, tuple[int, int, int]]:
    """A temporary copy, which stops where the header says that the file ends."""
    held = Spooled(place)
    head, shape, size = b"", (0, 0, 0), HEADER
    for piece in unpacked_pieces(path):
        if len(head) < HEADER:
            head += piece
            if len(head) < HEADER:
                continue
            piece, shape = head, _shape(head, place)
            size = HEADER + prod(shape)
        held.append(piece)
        if held.size > size:
            raise truncated(place, size, held.size)
    if held.size != size:
        raise truncated(place, size, held.size or len(head))
    held.finish()
    return held, shape


def _shape(head: bytes, place: str) -> tuple[int, int, int]:
    """Number, height and width of the images, none of which is believed yet."""
    if len(head) < HEADER or head[:2] != b"\0\0":
        raise damaged(place, KIND, f"it begins with {head[:4].hex(' ')}")
    if head[2:4] != b"\x08\x03":
        raise SourceError(
            f"expected bytes in 3 dimensions in {place}, got type 0x{head[2]:02x} in {head[3]}",
            hint="labels are no images: name the file that ends in idx3-ubyte",
            slug="idx-type",
        )
    n, height, width = (int.from_bytes(head[at : at + 4], "big") for at in (4, 8, 12))
    if height * width > MOST_PIXELS:
        raise too_many_pixels(place, f"{height} x {width}")
    return n, height, width
