"""Records as plain values."""

import json
from dataclasses import dataclass

import numpy as np

from isoscope.display.frames import Record, plain_value


@dataclass(frozen=True)
class Inner(Record):
    values: np.ndarray


@dataclass(frozen=True)
class Outer(Record):
    name: str
    inner: list[Inner]
    by: dict[int, float | None]


def test_a_record_becomes_what_json_takes():
    record = Outer("a", [Inner(np.array([1.0, np.nan]))], {3: np.float64(0.5)})
    line = {"name": "a", "inner": [{"values": [1.0, None]}], "by": {"3": 0.5}}
    assert record.to_dict() == line
    assert json.loads(json.dumps(record.to_dict())) == line


def test_what_is_not_finite_becomes_none():
    assert plain_value((float("inf"), 1, "x", True, None)) == [None, 1, "x", True, None]


def test_records_of_other_folders_are_turned_as_well():
    @dataclass(frozen=True)
    class Other:
        value: float

    assert plain_value({"a": Other(2.0)}) == {"a": {"value": 2.0}}
