"""Names of dtypes and devices."""

import pytest
import torch

from isoscope.capture.model.network import devices, find_device, find_dtype
from isoscope.errors import IsoscopeError


def test_without_a_name_it_is_float32():
    assert find_dtype(None) is find_dtype("float32") is torch.float32
    assert find_dtype("bfloat16") is torch.bfloat16
    assert find_dtype("float16") is torch.float16


@pytest.mark.parametrize("name", ["float64", "int8", "", "fp16"])
def test_an_unknown_dtype_lists_the_known(name):
    with pytest.raises(IsoscopeError, match="float32, bfloat16, float16, got") as e:
        find_dtype(name)
    assert e.value.slug == "dtype-unknown"


def test_the_processor_is_always_there():
    assert find_device("cpu") == torch.device("cpu")
    assert devices()[0] == "cpu"


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:97", ""])
def test_a_device_this_machine_lacks_is_refused_with_those_it_has(name):
    with pytest.raises(IsoscopeError, match="expected a device of this machine") as e:
        find_device(name)
    assert e.value.slug == "device-unknown"
    assert "cpu" in e.value.hint
