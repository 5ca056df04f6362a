"""Names of dtypes and devices."""

import pytest
import torch

from isoscope.capture.model.precision import device_named, devices, dtype_named
from isoscope.errors import IsoscopeError


def test_without_a_name_it_is_float32():
    assert dtype_named(None) is dtype_named("float32") is torch.float32
    assert dtype_named("bfloat16") is torch.bfloat16
    assert dtype_named("float16") is torch.float16


@pytest.mark.parametrize("name", ["float64", "int8", "", "fp16"])
def test_an_unknown_dtype_lists_the_known(name):
    with pytest.raises(IsoscopeError, match="float32, bfloat16, float16, got") as e:
        dtype_named(name)
    assert e.value.slug == "dtype-unknown"


def test_the_processor_is_always_there():
    assert device_named("cpu") == torch.device("cpu")
    assert devices()[0] == "cpu"


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:97", ""])
def test_a_device_this_machine_lacks_is_refused_with_those_it_has(name):
    with pytest.raises(IsoscopeError, match="expected a device of this machine") as e:
        device_named(name)
    assert e.value.slug == "device-unknown"
    assert "cpu" in e.value.hint
