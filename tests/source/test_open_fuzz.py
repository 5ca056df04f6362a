"""Broken and hostile input: every reader reads it or raises an error of ours, and ends.

Inputs are valid files, changed by a seeded mutator, and random bytes. `make slow` runs
100,000 of them; a few thousand run always. A failure names the input, so that
`mutant(kind, number)` makes it again.
"""

import io
import random
import resource
import signal
import struct
import warnings

import numpy as np
import pytest

from isoscope.errors import IsoscopeError
from isoscope.source import open_source

KINDS = ["npy", "npz", "safetensors", "parquet", "arrow", "jsonl", "csv", "tsv", "stream"]
SECONDS = 10  # for one input: they take a millisecond
MIB = 1 << 10  # getrusage counts KiB

INTEGERS = [0, 1, -1, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63)]
TOKENS = [
    b'"', b"'", b",", b";", b"\t", b"\n", b"\r\n", b"\r", b"[", b"]", b"{", b"}", b":", b"\0",
    b"nan", b"NaN", b"inf", b"-", b"1e999", b"1_0", b"null", b"true", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\\u0000", b'"\\ud800"', b"9" * 30, b"[" * 50, b"(2, 3)", b"(10**9,)",
    b"'|O'", b"'<f4'", b"'<U9'", b"'>c8'", b"F32", b"BF16", b"BOOL", b"data_offsets",
    b"shape", b"PAR1", b"ARROW1",
]  # fmt: skip
OPTIONS = [
    {},
    {},
    {"document": "doc"},
    {"document": "doc", "skip_bad": True},
    {"skip_bad": True},
]


def seeds(kind, folder, write, cloud):
    """Valid files of one kind."""
    rows = cloud(n=12, d=3)
    labels = {"doc": [i // 3 for i in range(12)]}
    named = {**labels, "t": [f"t{i}" for i in range(12)]}
    ways = {
        "npy": [{}],
        "npz": [{}, {"compressed": True}],
        "safetensors": [{}],
        "parquet": [{}, {"fixed": True, "compression": "none"}, {"row_group_size": 5}],
        "arrow": [{}, {"stream": True}, {"fixed": True, "batch": 5}],
        "jsonl": [{}],
        "csv": [{}, {"header": False}],
        "tsv": [{}],
    }
    found = []
    kinds = ["npy", "arrow", "jsonl", "csv"] if kind == "stream" else [kind]
    for each in kinds:
        for i, how in enumerate(ways[each]):
            for j, dtype in enumerate(["float32", "float64", "int8"]):
                carried = labels if each == "safetensors" or j else named
                path = folder / f"seed-{i}-{j}.{each}"
                write(path, rows.astype(dtype), None if each == "npy" else carried, **how)
                found.append(path.read_bytes())
    if kind in ("csv", "tsv"):
        found.append(b'doc,v\na,"[1, 2]"\na,"[3 4]"\nb,"[5,6]"\n')
    if kind == "jsonl":
        found.append(b"[1, 2]\n[3, 4]\n")
    if kind == "npy":
        turned = io.BytesIO()
        np.save(turned, np.asfortranarray(rows.astype(">f8")))
        found.append(turned.getvalue())
    return found


def mutant(kind, number, valid):
    """The input of this number: a valid file with a few changes, or noise."""
    rng = random.Random(f"{kind} {number}")
    if rng.random() < 0.05:
        head = rng.choice(valid)[: rng.choice([0, 0, 4, 8, 16])]
        return head + rng.randbytes(rng.randrange(200)), rng
    content = bytearray(rng.choice(valid))
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        change(content, rng, valid)
    return bytes(content), rng


def change(content, rng, valid):
    at = rng.randrange(len(content) + 1)
    # Half of the changes near one of the ends, where headers and footers are.
    if rng.random() < 0.25:
        at = rng.randrange(min(200, len(content) + 1))
    elif rng.random() < 0.33:
        at = max(0, len(content) - rng.randrange(300))
    way = rng.randrange(9)
    if way == 0:
        content[at : at + 1] = bytes([rng.randrange(256)])
    elif way == 1 and at < len(content):
        content[at] ^= 1 << rng.randrange(8)
    elif way == 2:
        del content[at : at + rng.choice([1, 2, 8, 50])]
    elif way == 3:
        del content[at:]
    elif way == 4:
        content[at:at] = rng.choice(TOKENS)
    elif way == 5:
        token = rng.choice(TOKENS)
        content[at : at + len(token)] = token
    elif way == 6:
        size, form = rng.choice([(4, "<i"), (8, "<q"), (2, "<h"), (1, "<b")])
        low, high = -(1 << 8 * size - 1), (1 << 8 * size - 1) - 1
        value = max(low, min(high, rng.choice(INTEGERS)))
        content[at : at + size] = struct.pack(form, value)
    elif way == 7:
        piece = content[at : at + rng.randrange(60)]
        content[at:at] = piece
    else:
        other = rng.choice(valid)
        cut = rng.randrange(len(other))
        content[at : at + rng.randrange(80)] = other[cut : cut + rng.randrange(80)]


def read(place, options, rows=None):
    """Read all there is, as a measurement would; return the number of rows."""
    source = open_source(place, **options)
    count = 0
    for chunk in source.chunks(rows):
        np.isfinite(chunk.rows).all()
        count += len(chunk)
        assert chunk.documents is None or len(chunk.documents) == len(chunk)
    assert isinstance(source.fingerprint, str)
    return count


def survives(kind, numbers, folder, write, cloud):
    valid = seeds(kind, folder, write, cloud)
    path = folder / f"mutant.{kind}"

    def expired(*_):
        raise TimeoutError(f"{kind} input took more than {SECONDS} s")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes = {"read": 0, "refused": 0}
    previous = signal.signal(signal.SIGALRM, expired)
    try:
        for number in numbers:
            content, rng = mutant(kind, number, valid)
            options = {} if kind == "npy" else rng.choice(OPTIONS)
            path.write_bytes(content)
            place = io.BytesIO(content) if kind == "stream" else path
            signal.setitimer(signal.ITIMER_REAL, SECONDS)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", RuntimeWarning)  # those of NumPy
                    read(place, options, rng.choice([None, 1, 5]))
                outcomes["read"] += 1
            except IsoscopeError as error:
                assert error.problem and error.hint and error.slug
                assert "\n" not in error.problem
                outcomes["refused"] += 1
            except Exception as error:
                pytest.fail(f"mutant({kind!r}, {number}) with {options}: {error!r}")
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, previous)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 300 * MIB, "an input was believed about its size"
    return outcomes


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_broken_inputs_are_read_or_refused(kind, tmp_path, write, cloud):
    outcomes = survives(kind, range(250), tmp_path, write, cloud)
    assert min(outcomes.values()) > 0  # the mutator neither breaks all nor nothing


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_thousand_broken_inputs_are_read_or_refused(kind, tmp_path, write, cloud):
    share = range(1000, 1000 + 100_000 // len(KINDS) + 1)
    print(kind, survives(kind, share, tmp_path, write, cloud))
