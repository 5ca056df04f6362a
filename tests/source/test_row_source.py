"""The source: chunks, passes and what is known beforehand."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from isoscope.source import open_source


def test_nothing_is_read_before_the_first_chunk_is_requested(tmp_path, cloud):
    np.save(tmp_path / "v.npy", cloud())
    source = open_source(tmp_path / "v.npy")
    chunks = source.chunks()
    (tmp_path / "v.npy").unlink()
    with pytest.raises(Exception, match="expected a file"):
        next(chunks)


def test_a_chunk_needs_a_row():
    with pytest.raises(ValueError, match="at least 1 row"):
        open_source(np.ones((2, 2))).chunks(0)


def test_a_source_does_not_change():
    source = open_source(np.ones((2, 2)))
    with pytest.raises(FrozenInstanceError):
        source.width = 3
    assert source.fingerprint is source.fingerprint


def test_the_default_is_24_megabytes_of_rows(tmp_path):
    rows = np.zeros((10_000, 768), dtype=np.float32)
    assert [len(each) for each in open_source(rows).chunks()] == [7812, 2188]
