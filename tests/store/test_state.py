"""The arrays of a survey, as they were."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from isoscope.store.state import read_state

KINDS = st.sampled_from([np.float64, np.float32, np.int64, np.uint64, np.int32, np.uint8, bool])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(array=KINDS.flatmap(lambda kind: arrays(kind, array_shapes(min_dims=0, min_side=0))))
def test_an_array_comes_back_bit_by_bit(tmp_path_factory, write_state, array):
    path = tmp_path_factory.mktemp("state") / "s"
    write_state(path, {"a": 1}, {"x": array, "turned": array.T})
    meta, back = read_state(path)
    assert meta == {"a": 1}
    for name, expected in (("x", array), ("turned", array.T)):
        assert back[name].dtype == expected.dtype
        assert back[name].tobytes() == expected.tobytes()
        assert back[name].shape == expected.shape


def test_what_comes_back_can_be_added_to(tmp_path, box, write_state):
    write_state(tmp_path / "s", *box().to_state())
    _, arrays = read_state(tmp_path / "s")
    for array in arrays.values():
        array += 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 64,  # a header of 2**64 bytes
        (2**62).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",  # whole, but not a survey's
    ],
)
def test_what_is_no_state_is_refused(tmp_path, content):
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        read_state(tmp_path / "s")


def test_a_description_that_is_no_dictionary_is_refused(tmp_path, write_state):
    write_state(tmp_path / "s", [1], {"x": np.ones(1)})
    with pytest.raises(ValueError, match="expected a survey's description, got list"):
        read_state(tmp_path / "s")
