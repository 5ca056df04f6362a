"""The first bytes of formats, to say what a file or stream really is."""

from isoscope.errors import SourceError

NPY = b"\x93NUMPY"
ARROW_FILE = b"ARROW1"
ARROW_STREAM = b"\xff\xff\xff\xff"
ZIP = b"PK\x03\x04"
PARQUET = b"PAR1"

_KNOWN = {
    NPY: "an npy file",
    ARROW_FILE: "an arrow file",
    ARROW_STREAM: "an arrow stream",
    ZIP: "a zip archive (npz, or a torch file)",
    PARQUET: "a parquet file",
    b"FEA1": "a feather file of version 1",
    b"\x1f\x8b": "a gzip file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"\x89HDF": "an HDF5 file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
    b"\x80": "a pickle",
}


def described(head: bytes) -> str:
    """Return what the first bytes of some content look like, in words."""
    for magic, words in _KNOWN.items():
        if head.startswith(magic):
            return words
    if looks_like_safetensors(head):
        return "a safetensors file"
    return f"something else (it begins with {head[:8].hex(' ')})" if head else "nothing"


def looks_like_safetensors(head: bytes) -> bool:
    """Whether a header of plausible length and its opening brace are there."""
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 32


def wrong_kind(place: str, expected: str, head: bytes) -> SourceError:
    """Return the error for a file whose content is of another format than its suffix."""
    return SourceError(
        f"expected {expected} at {place}, got {described(head)}",
        hint="give the file the suffix of its format, or write it again",
        slug="file-kind",
    )
