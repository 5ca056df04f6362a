"""Images: files of their own, as red, green and blue, and idx, the format of MNIST."""

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoscope.errors import DocumentError, SourceError
from isoscope.hashing import HEAD, content_key
from isoscope.source.bytes import FileBytes, RandomBytes, TemporaryBytes, gzip_pieces
from isoscope.source.corpus.corpus import (
    Corpus,
    CorpusRequest,
    Document,
    FileCorpus,
    import_extra,
)
from isoscope.source.file_errors import (
    SKIP,
    border,
    damaged,
    printable,
    refuse_columns,
    truncated,
)
from isoscope.types import Array

if TYPE_CHECKING:
    from PIL.Image import Image

# Others of Pillow's formats call programs, such as Ghostscript for EPS.
FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "GIF", "TIFF", "PPM")
MOST_PIXELS = (1 << 30) // 4 // 3  # Pillow's own limit: 256 MiB of colours
IDX_HEADER = 16  # bytes
IDX = "an idx file of images"


class ImageFiles(FileCorpus):
    """Image files; headers are read on opening, pixels on demand."""

    BAD = "images that cannot be used"

    def __init__(
        self, paths: Sequence[Path], root: Path | None, request: CorpusRequest
    ) -> None:
        super().__init__("image", paths, root, request)

    def check(self, path: Path) -> str | None:
        """Read the header."""
        with _open_image(path):
            return None

    def document(self, ordinal: int) -> Document:
        """Decode one image; of an animation, the first frame."""
        path = self.path(ordinal)
        with _open_image(path) as image:
            pixels = _decode_pixels(image)
        return Document(self.id(ordinal), pixels, place=str(path))


class IdxImages(Corpus):
    """The images of an idx file, which are read one by one."""

    def __init__(self, path: Path, name: str, request: CorpusRequest) -> None:
        super().__init__("image", name, str(path))
        refuse_columns(self.place, request.columns)
        open_idx = _unpack_idx if path.suffix.lower() == ".gz" else _open_idx
        self._data, self._shape = open_idx(path, name)
        if prod(self._shape[1:]) == 0:
            self._shape = (0, 0, 0)

    def __len__(self) -> int:
        return self._shape[0]

    def document(self, ordinal: int) -> Document:
        """Read one image, grey as three equal colours."""
        at = self.within(ordinal)
        _, height, width = self._shape
        raw = self._data.read(IDX_HEADER + at * height * width, height * width)
        grey = np.frombuffer(raw, dtype=np.uint8).reshape(height, width, 1)
        return Document(
            self.id(at), np.repeat(grey, 3, axis=2), place=f"{self.place}, image {at}"
        )

    def digests(self) -> Array:
        """Hashes of the first bytes of each image."""
        size = prod(self._shape[1:])
        heads = (
            self._data.read(IDX_HEADER + i * size, min(size, HEAD)) for i in range(len(self))
        )
        return np.array([content_key(head) for head in heads], dtype=np.uint64)

    def stamp(self) -> str:
        """Compute the fingerprint of the content, packed or not."""
        return self._data.digest("idx")


@contextmanager
def _open_image(path: Path) -> Generator["Image"]:
    """Open an image and check its header; any exception while it is open counts as damage."""
    pillow = import_extra("PIL.Image", "image", "images")
    place = str(path)
    with border(place), path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about damage, which is an error or harmless
        warnings.simplefilter("error", pillow.DecompressionBombWarning)
        try:
            with pillow.open(file, formats=FORMATS) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise _too_many_pixels(place, f"{image.width} x {image.height}")
                yield image
        except SourceError:
            raise
        except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
            raise _too_many_pixels(place, "far more") from error
        except Exception as error:  # Pillow raises a dozen kinds for damage
            name = type(error).__name__
            reason = "no image" if name == "UnidentifiedImageError" else str(error) or name
            raise DocumentError(
                f"expected an image at {place}, got {printable(reason)!r}",
                hint=f"write or copy it again; {SKIP}",
                slug="image-unreadable",
            ) from error


def _decode_pixels(image: "Image") -> Array:
    """Pixels as (height, width, 3), upright; transparency is dropped."""
    operations = import_extra("PIL.ImageOps", "image", "images")
    image.load()
    upright = operations.exif_transpose(image)
    if upright.mode == "F":
        raise ValueError("pixels that are not whole numbers")
    if upright.mode.startswith("I"):  # 16 bits, which Pillow would cut off, not scale
        grey = (np.clip(np.asarray(upright), 0, 65535) >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    return np.array(upright.convert("RGB"), dtype=np.uint8)


def _too_many_pixels(place: str, got: str) -> DocumentError:
    return DocumentError(
        f"expected {MOST_PIXELS} pixels at most in {place}, got {got}",
        hint=f"make it smaller; {SKIP}",
        slug="image-too-large",
    )


def _open_idx(path: Path, name: str) -> tuple[RandomBytes, tuple[int, int, int]]:
    data = FileBytes(path, name)
    with border(data.place), data.open() as stream:
        shape = _idx_shape(stream.read(IDX_HEADER), data.place)
        size = path.stat().st_size
    if size != IDX_HEADER + prod(shape):
        raise truncated(data.place, IDX_HEADER + prod(shape), size)
    return data, shape


def _unpack_idx(path: Path, name: str) -> tuple[RandomBytes, tuple[int, int, int]]:
    """A temporary copy, which stops where the header says that the file ends."""
    place = str(path)
    data = TemporaryBytes(name, place)
    shape, size = (0, 0, 0), IDX_HEADER
    for piece in gzip_pieces(path):
        if not data.size:
            shape = _idx_shape(piece, place)
            size = IDX_HEADER + prod(shape)
        data.append(piece)
        if data.size > size:
            break
    if data.size != size:
        raise truncated(place, size, data.size)
    data.finish()
    return data, shape


def _idx_shape(head: bytes, place: str) -> tuple[int, int, int]:
    """Number, height and width of the images, as the header claims them."""
    if len(head) < IDX_HEADER or head[:2] != b"\0\0":
        raise damaged(place, IDX, f"it begins with {head[:4].hex(' ')}")
    if head[2:4] != b"\x08\x03":
        raise SourceError(
            f"expected bytes in 3 dimensions in {place}, got type 0x{head[2]:02x} in {head[3]}",
            hint="labels are not images: name the file that ends in idx3-ubyte",
            slug="idx-type",
        )
    n, height, width = (int.from_bytes(head[at : at + 4], "big") for at in (4, 8, 12))
    if height * width > MOST_PIXELS:
        raise _too_many_pixels(place, f"{height} x {width}")
    return n, height, width
