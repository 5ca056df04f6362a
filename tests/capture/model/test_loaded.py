"""What was loaded stays as it is."""

import dataclasses

import pytest

from isoscope.capture.model.load import Loaded, load


def test_what_was_loaded_cannot_be_changed(tiny):
    loaded = load(tiny())
    assert isinstance(loaded, Loaded)
    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.name = "other"
