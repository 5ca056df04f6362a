"""Hashes that are the same on every machine: they decide halves, groups and samples."""

from hashlib import blake2b

import numpy as np

from isoscope.types import Array

GROUPS = 32  # documents are dealt to this many groups, from which intervals are computed
HEAD = 4096  # bytes of a document that its digest looks at
HEAD_NUMBERS = 16  # of a row
_TYPES = 0x74797065  # so that a token and a document of the same number differ
_CONTENT = 0x636F6E74  # so that rows known by content and by name differ
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def text_key(text: str) -> np.uint64:
    """Hash of a string; Python's own is salted and would differ from run to run."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def content_key(content: bytes) -> np.uint64:
    """Hash of the first bytes of a document."""
    digest = blake2b(content[:HEAD], digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def sorted_distinct(*parts: Array) -> Array:
    """Return the distinct values of some arrays, in order.

    As np.unique does, which imports numpy.ma where it is asked for nothing else: a sixth of
    the start of a small measurement.
    """
    values = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return np.unique(values, return_counts=True)[0]


def splitmix64(keys: Array | np.uint64) -> Array:
    """Return splitmix64 of each key: near keys end far apart, and no two share an image."""
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is the point
        z = np.asarray(keys, dtype=np.uint64) + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * _FIRST
        z = (z ^ (z >> np.uint64(27))) * _SECOND
        return z ^ (z >> np.uint64(31))


def hash_tuples(*parts: Array | np.uint64 | int) -> Array:
    """Hash a tuple of integers element by element, one splitmix64 round for each part."""
    key = np.zeros((), dtype=np.uint64)
    for part in parts:
        key = splitmix64(key ^ np.asarray(part, dtype=np.uint64))
    return key


def ordinal_documents(source: str, ordinals: Array, *, seed: int = 0) -> Array:
    """Return document keys for rows known by a source and their order in it.

    Each row is its own document.
    """
    return hash_tuples(seed, text_key(source), ordinals)


def row_documents(rows: Array, ordinals: Array, *, seed: int = 0) -> Array:
    """Return document keys for rows known by their order and content, (n,).

    Each row is its own document. No name is in the key: a file and the array in it have the
    same keys, and files whose rows differ have different ones.
    """
    return hash_tuples(seed, _CONTENT, ordinals, row_digests(rows))


def row_digests(rows: Array) -> Array:
    """Return a hash of the first numbers of each row, (n,).

    Numbers count as float32, so that a copy in float64 or in a table has the same hashes.
    """
    head = np.zeros((len(rows), HEAD_NUMBERS), dtype="<f4")
    with np.errstate(over="ignore"):  # beyond float32 they become infinite
        head[:, : rows.shape[1]] = rows[:, :HEAD_NUMBERS]
    head += np.float32(0)  # -0.0 becomes 0.0
    return hash_tuples(*head.view("<u8").T)


def numbered_documents(digests: Array) -> Array:
    """Return what identifies the documents of a corpus: their order and digests, (n,)."""
    return hash_tuples(_CONTENT, np.arange(len(digests), dtype=np.uint64), digests)


def keyed_documents(keys: Array, *, seed: int = 0) -> Array:
    """Return document keys for documents that are known by a hash."""
    return hash_tuples(seed, keys)


def type_hashes(tokens: Array) -> Array:
    """Return the order in which token types are kept: no two share a place in it.

    The same in every run, so that models with one tokenizer are compared on the same types.
    """
    return hash_tuples(_TYPES, tokens)


def named_documents(names: Array, *, seed: int = 0) -> Array:
    """Return document keys for rows with document ids, hashing each run of one id once."""
    names = np.asarray(names)
    if not len(names):
        return np.zeros(0, dtype=np.uint64)
    starts = np.flatnonzero(np.r_[True, names[1:] != names[:-1]])
    keys = np.array([text_key(str(name)) for name in names[starts]], dtype=np.uint64)
    lengths = np.diff(np.r_[starts, len(names)])
    return np.repeat(keyed_documents(keys, seed=seed), lengths)
