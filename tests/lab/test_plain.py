"""Records as plain values."""

import json
from dataclasses import dataclass, field

import numpy as np

from isoscope.lab.plain import Plain, as_plain


@dataclass(frozen=True)
class Inner(Plain):
    values: np.ndarray


@dataclass(frozen=True)
class Outer(Plain):
    name: str
    inner: list[Inner]
    by: dict[int, float | None]
    hidden: np.ndarray = field(metadata={"told": False})


def test_a_record_becomes_what_json_takes_without_what_is_not_told():
    record = Outer("a", [Inner(np.array([1.0, np.nan]))], {3: np.float64(0.5)}, np.ones(3))
    told = {"name": "a", "inner": [{"values": [1.0, None]}], "by": {"3": 0.5}}
    assert record.to_dict() == told
    assert json.loads(json.dumps(record.to_dict())) == told


def test_what_is_not_finite_becomes_none():
    assert as_plain((float("inf"), 1, "x", True, None)) == [None, 1, "x", True, None]


def test_records_of_other_folders_are_turned_as_well():
    @dataclass(frozen=True)
    class Other:
        value: float

    assert as_plain({"a": Other(2.0)}) == {"a": {"value": 2.0}}
