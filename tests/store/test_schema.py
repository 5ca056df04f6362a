"""The fixed parts of a run folder."""

from pathlib import Path

import numpy as np
import pytest

from isoscope.store import SCHEMA
from isoscope.store.schema import FILES, plain_values


def test_this_is_schema_one_with_four_files():
    assert SCHEMA == 1
    assert set(FILES) == {"run.json", "state.safetensors", "readings.parquet", "config.yaml"}
    assert FILES[-1] == "run.json"


def test_numbers_and_paths_become_plain():
    value = {"a": np.float32(0.5), "b": np.int64(3), "c": Path("x/y"), "d": (1, None, True)}
    assert plain_values(value) == {"a": 0.5, "b": 3, "c": "x/y", "d": [1, None, True]}


def test_half_characters_of_odd_file_names_are_written_out():
    assert plain_values({"caf\udce9": ["\udcff.npy"]}) == {r"caf\udce9": [r"\udcff.npy"]}


def test_an_object_is_refused():
    with pytest.raises(TypeError, match="cannot store a object"):
        plain_values({"a": object()})
