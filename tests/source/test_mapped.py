"""Mapped rows: right at any offset, and given back."""

import re
from pathlib import Path

import numpy as np
import pytest

from isoscope.errors import SourceError
from isoscope.source.header import Header
from isoscope.source.mapped import mapped, mapped_blocks
from isoscope.source.shape import plain


@pytest.mark.parametrize("offset", [0, 1, 7, 64])
@pytest.mark.parametrize("fortran", [False, True])
def test_any_offset_and_order_gives_the_same_rows(offset, fortran, tmp_path, cloud):
    rows = cloud(dtype="float64")
    path = tmp_path / "raw"
    path.write_bytes(b"x" * offset + rows.tobytes("F" if fortran else "C"))
    header = Header(rows.shape, rows.dtype, fortran, offset)
    parts = [plain(block) for _, block in mapped_blocks(path, header, 7, place="raw")]
    np.testing.assert_array_equal(np.concatenate(parts), rows)
    some = list(mapped_blocks(path, header, 7, place="raw", start=11, stop=30))
    assert [at for at, _ in some] == [11, 18, 25]
    np.testing.assert_array_equal(np.concatenate([each for _, each in some]), rows[11:30])
    assert all(part.flags.aligned and part.flags.c_contiguous for part in parts)


def test_a_file_that_shrank_is_refused(tmp_path):
    path = tmp_path / "raw"
    path.write_bytes(b"x" * 10)
    with pytest.raises(SourceError, match="expected 80 bytes in raw, got 10"):
        mapped(path, Header((5, 2), np.dtype("f8"), False, 0), place="raw")


def test_pages_that_were_read_are_unmapped(tmp_path):
    path = tmp_path / "raw"
    header = Header((20_000, 256), np.dtype("f8"), False, 0)  # 40 MB
    with path.open("wb") as file:
        file.truncate(header.size)

    def resident():
        status = Path("/proc/self/status").read_text()
        return int(re.search(r"RssFile:\s+(\d+)", status)[1]) // 1024  # MiB

    before = resident()
    most = 0
    for _, block in mapped_blocks(path, header, 1000, place="raw"):
        assert block.sum() == 0
        most = max(most, resident())
    assert most - before < 20
