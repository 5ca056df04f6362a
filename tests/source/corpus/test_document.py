"""A document cannot be changed, and says only what is known of it."""

from dataclasses import FrozenInstanceError

import pytest

from isoscope.source.corpus import Document


def test_what_is_not_known_is_empty():
    document = Document("a:0", "text")
    assert (document.target, document.rate, document.place) == (None, 0, "")


def test_it_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Document("a:0", "text").id = "b"
