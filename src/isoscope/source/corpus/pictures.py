"""Image files, a document each, as red, green and blue."""

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.errors import DocumentError, SourceError
from isoscope.source.border import border, shown
from isoscope.source.corpus.document import Document
from isoscope.source.corpus.extra import needed
from isoscope.source.corpus.fault import SKIP, columns_given
from isoscope.source.corpus.files import Files
from isoscope.source.corpus.wanted import Wanted
from isoscope.types import Array

# Others of Pillow's formats call programs, such as Ghostscript for EPS.
FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "GIF", "TIFF", "PPM")
MOST_PIXELS = (1 << 30) // 4 // 3  # Pillow's own limit: 256 MiB of colours


class Images(Files):
    """Image files; headers are read when it is opened, pixels when they are asked for."""

    def __init__(self, paths: Sequence[Path], root: Path | None, wanted: Wanted) -> None:
        super().__init__("image", paths, root)
        for column in wanted.columns:
            raise columns_given(self.place, column)
        kept: list[Path] = []
        for path in paths:
            try:
                with _opened(path):
                    kept.append(path)
            except DocumentError:
                if not wanted.skip_bad:
                    raise
                self.dropped.add("images that cannot be used", str(path))
        self.keep(kept)

    def document(self, ordinal: int) -> Document:
        """Decode one image; of an animation, the first frame."""
        path = self.path(ordinal)
        with _opened(path) as image:
            pixels = _pixels(image)
        return Document(self.id(ordinal), pixels, place=str(path))


@contextmanager
def _opened(path: Path) -> Generator[Any]:
    """An image whose header makes sense; what fails while it is open is its fault."""
    pillow = needed("PIL.Image", "image", "images")
    place = str(path)
    with border(place), path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of damage, which is an error or does no harm
        warnings.simplefilter("error", pillow.DecompressionBombWarning)
        try:
            with pillow.open(file, formats=FORMATS) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise too_many_pixels(place, f"{image.width} x {image.height}")
                yield image
        except SourceError:
            raise
        except (pillow.DecompressionBombError, pillow.DecompressionBombWarning) as error:
            raise too_many_pixels(place, "far more") from error
        except Exception as error:  # Pillow raises a dozen kinds for damage
            raise _unreadable(place, error) from error


def _pixels(image: Any) -> Array:
    """Pixels as (height, width, 3), upright; transparency is left out."""
    operations = needed("PIL.ImageOps", "image", "images")
    image.load()
    upright = operations.exif_transpose(image)
    if upright.mode == "F":
        raise ValueError("pixels that are not whole numbers")
    if upright.mode.startswith("I"):  # 16 bits, which Pillow would cut off, not scale
        grey = (np.clip(np.asarray(upright), 0, 65535) >> 8).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    return np.array(upright.convert("RGB"), dtype=np.uint8)


def too_many_pixels(place: str, got: str) -> DocumentError:
    """Return the error for an image that would fill the memory."""
    return DocumentError(
        f"expected {MOST_PIXELS} pixels at most in {place}, got {got}",
        hint=f"make it smaller; {SKIP}",
        slug="image-too-large",
    )


def _unreadable(place: str, error: Exception) -> DocumentError:
    name = type(error).__name__
    reason = "no image" if name == "UnidentifiedImageError" else str(error) or name
    return DocumentError(
        f"expected an image at {place}, got {shown(reason)!r}",
        hint=f"write or copy it again; {SKIP}",
        slug="image-unreadable",
    )
