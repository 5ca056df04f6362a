"""Suffixes: each known one has a reader that is tested elsewhere."""

import pytest

from isoscope.source.file import OPENERS, open_file
from isoscope.source.source import Wanted


@pytest.mark.parametrize(
    "alias", [(".pq", ".parquet"), (".ipc", ".arrow"), (".ndjson", ".jsonl")]
)
def test_other_suffixes_of_a_format_do(alias, tmp_path, cloud, write):
    other, suffix = alias
    path = write(tmp_path / f"v{suffix}", cloud())
    path = path.rename(path.with_suffix(other))
    assert open_file(path, Wanted()).width == 4


def test_suffixes_are_lower_case_and_begin_with_a_dot():
    assert all(each == each.lower() and each.startswith(".") for each in OPENERS)
