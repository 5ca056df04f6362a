"""Runs to save: a survey is anything that gives its state, so a box of arrays will do."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as library_bytes

from isoscope.display import READINGS, Results
from isoscope.store import new_origin, save
from isoscope.store.state import META
from isoscope.types import Reading


def write_as_library(path, meta, arrays):
    """Write a state file as the library of the format does."""
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    content = library_bytes(whole, metadata={META: json.dumps(meta)})
    with Path(path).open("xb") as file:  # not by name: Python reports a full disk as such
        file.write(content)


def read_as_library(path):
    """Read the description and the arrays of a state file as the library of the format does."""
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()[META]), arrays


class Box:
    """The smallest survey there is."""

    def __init__(self, fill=1.0, size=6):
        self.meta = {"sites": ["rows"], "fill": fill}
        self.arrays = {
            "rows.sum": np.full(size, fill),
            "rows.count": np.array(size, dtype=np.int64),
            "rows.crossed": np.arange(6.0).reshape(2, 3).T,  # not contiguous
        }

    def to_state(self):
        return self.meta, self.arrays

    def write(self, path):
        write_as_library(path, *self.to_state())


def source(name="a", fingerprint="f-a", **other):
    fields = {"rows": 6, "dtype": "float32", "width": 3, "file": f"{name}.npy"}
    return {"name": name, "fingerprint": fingerprint, **fields, **other}


def origin_of(*sources, settings=None, seed=0):
    return new_origin(
        sources=sources or (source(),), settings=settings or {"zeta": 0.2}, seed=seed
    )


def readings_of(value=0.5):
    one = Reading(
        "a", "rows", "all", "", None, "isoscore", value, 0.4, 0.6, 6, 3, ("few rows",)
    )
    two = Reading("a", "rows", "all", "rare", 7, "alpha", 1.5, None, None, 6, 3)
    return Results([one, two], READINGS, left_out=["twonn: needs at least 9 rows, got 6"])


CONFIG = {"measure": {"vectors": "a.npy", "seed": 0}}


def saved_run(path, fill=1.0, overwrite=False, **other):
    box = Box(fill, **other)
    return save(path, box, readings_of(fill), origin_of(), CONFIG, overwrite=overwrite)


@pytest.fixture
def box():
    return Box


@pytest.fixture(scope="session", name="write_as_library")
def write_as_library_fixture():
    return write_as_library


@pytest.fixture(scope="session", name="read_as_library")
def read_as_library_fixture():
    return read_as_library


@pytest.fixture
def origin():
    return origin_of


@pytest.fixture
def make_source():
    return source


@pytest.fixture
def readings():
    return readings_of


@pytest.fixture
def config():
    return CONFIG


@pytest.fixture
def write():
    """Save a run whose every part says `fill`."""
    return saved_run


@pytest.fixture
def here(tmp_path) -> Path:
    """A folder whose whole contents are compared before and after."""
    folder = tmp_path / "here"
    folder.mkdir()
    return folder
