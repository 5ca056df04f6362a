"""The header of an npy array, read without eval and without trusting a number in it."""

import re
from dataclasses import dataclass
from math import prod
from typing import BinaryIO

import numpy as np

from isoscope.errors import SourceError
from isoscope.source.border import border, damaged
from isoscope.source.feed import exactly
from isoscope.source.magic import NPY, wrong_kind

MAX_HEADER = 10_000  # NumPy's own limit


@dataclass(frozen=True, slots=True)
class Header:
    """What is said about an array before its numbers begin."""

    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    fortran: bool
    offset: int  # bytes before the numbers

    @property
    def size(self) -> int:
        """Bytes of header and numbers together."""
        return self.offset + prod(self.shape) * self.dtype.itemsize


def read_header(stream: BinaryIO, place: str) -> Header:
    """Read an npy header; the stream is left at the first number."""
    with border(place):
        head = stream.read(8)
    if head[:6] != NPY:
        raise pickled(place) if head[:1] == b"\x80" else wrong_kind(place, "an npy file", head)
    if len(head) < 8 or head[6] not in (1, 2, 3):
        raise damaged(place, "an npy file", f"version {head[6:8].hex(' ')}")
    digits = 2 if head[6] == 1 else 4
    length = int.from_bytes(exactly(stream, digits, place), "little")
    if length > MAX_HEADER:
        raise damaged(place, "an npy file", f"a header of {length} bytes")
    text = exactly(stream, length, place).decode("latin-1")
    shape, dtype, fortran = _parsed(text, place)
    return Header(shape, dtype, fortran, 8 + digits + length)


def pickled(place: str) -> SourceError:
    """Return the error for Python objects, which are never unpickled."""
    return SourceError(
        f"expected an array of numbers in {place}, got a pickle",
        hint="pickles can run code and are not opened: save with np.save, allow_pickle=False",
        slug="pickle",
    )


def _parsed(text: str, place: str) -> tuple[tuple[int, ...], np.dtype[np.generic], bool]:
    shape = re.search(r"['\"]shape['\"]\s*:\s*\(([\d,\sL]{0,600})\)", text)
    order = re.search(r"['\"]fortran_order['\"]\s*:\s*(True|False)", text)
    descr = re.search(r"['\"]descr['\"]\s*:\s*(\[|['\"]([^'\"]{1,40})['\"])", text)
    if not (shape and order and descr):
        raise damaged(place, "an npy file", "a header without shape, order or type")
    if descr[1] == "[":
        raise SourceError(
            f"expected real numbers in {place}, got a structured array",
            hint="save one field as a plain two-dimensional array",
            slug="dtype-unsupported",
        )
    sizes = [each.strip().rstrip("L") for each in shape[1].split(",") if each.strip()]
    if any(not each.isdigit() or len(each) > 19 for each in sizes):
        raise damaged(place, "an npy file", f"the shape ({shape[1]})")
    try:
        # NumPy reads far more into such a string: lists, commas, names of Python types.
        if not re.fullmatch(r"[<>|=]?[A-Za-z?]\d{0,9}(\[\w{1,8}\])?", descr[2]):
            raise ValueError
        dtype = np.dtype(descr[2])
    except (TypeError, ValueError) as error:
        raise damaged(place, "an npy file", f"the type {descr[2]!r}") from error
    if dtype.hasobject:
        raise pickled(place)
    return tuple(int(each) for each in sizes), dtype, order[1] == "True"
