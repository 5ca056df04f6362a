"""Any module can be listened to by name."""

import pytest
import torch
from torch import nn

from isoscope.capture.tap import listening, named_taps
from isoscope.errors import UnknownNameError


def model():
    return nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))


def test_names_are_sites_unless_sites_are_given():
    assert [(t.site, t.module) for t in named_taps(model(), ["0", "1.0"])] == [
        ("0", "0"),
        ("1.0", "1.0"),
    ]
    (tap,) = named_taps(model(), {"my.site": "1"})
    assert (tap.site, tap.module) == ("my.site", "1")


def test_one_vector_an_example_is_one_position():
    heard, net = {}, model()
    with torch.no_grad(), listening(net, named_taps(net, ["1"]), heard.__setitem__):
        output = net(torch.ones(5, 3))
    assert torch.equal(heard["1"], output[:, None])


def test_an_unknown_module_is_reported_with_the_nearest():
    with pytest.raises(UnknownNameError, match=r"no module is called '1\.2'") as e:
        named_taps(model(), ["1.2"])
    assert e.value.hint == "did you mean '1.1'?"
    assert e.value.slug == "unknown-module"
