"""Which columns of a schema are read."""

import pyarrow as pa
import pytest

from isoscope.errors import SourceError
from isoscope.source.schema import is_list, layout
from isoscope.source.source import Wanted

FLOATS = pa.list_(pa.float32())


def chosen(fields, **asked):
    return layout(pa.schema(fields), Wanted(**asked), "t")


def test_lists_go_before_plain_columns():
    plan = chosen([("x", pa.float64()), ("v", FLOATS), ("words", pa.list_(pa.string()))])
    assert plan.vector == ("v",) and plan.listed and plan.width is None
    assert plan.dtype == "float32" and plan.names == ["v"]


def test_a_list_of_fixed_size_tells_its_width():
    assert chosen([("v", pa.list_(pa.int8(), 3))]).width == 3
    with pytest.raises(SourceError, match="width 0"):
        chosen([("v", pa.list_(pa.int8(), 0))])


def test_label_columns_are_no_part_of_the_vector():
    fields = [("x", pa.float32()), ("y", pa.float64()), ("z", pa.float32()), ("d", pa.int8())]
    plan = chosen(fields, text="z", document="d", id="d")
    assert plan.vector == ("x", "y") and plan.dtype == "float64" and plan.width == 2
    assert plan.names == ["x", "y", "d", "z"]


def test_kinds_of_lists():
    assert all(
        is_list(each) for each in (FLOATS, pa.large_list(pa.int8()), pa.list_(pa.int8(), 2))
    )
    assert not any(is_list(each) for each in (pa.float32(), pa.string(), pa.binary()))
