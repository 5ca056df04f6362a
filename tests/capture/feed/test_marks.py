"""Layouts tell padding, special positions and regrouped ones apart."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from isoscope.capture.feed.base import (
    TokenLayout,
    frame_marks,
    molecule_marks,
    pads_to_windows,
    patch_marks,
    within,
)
from isoscope.errors import ConfigError

CPU = torch.device("cpu")


def tokens(counts, length, **settings):
    real = within(counts, length, CPU)
    special = torch.zeros_like(real)
    special[:, 0] = True
    return TokenLayout(real, special, torch.arange(length).expand(len(counts), -1), **settings)


def test_tokens_are_marked_as_they_are():
    marks = tokens([2, 4], 4)(4)
    assert marks.real.tolist() == [[True, True, False, False], [True] * 4]
    assert marks.special.sum() == 2
    assert marks.tokens[1].tolist() == [0, 1, 2, 3]


def test_what_a_model_adds_on_the_right_is_padding():
    marks = tokens([2, 4], 4, lengthened=True)(8)
    assert marks.real.sum(dim=1).tolist() == [2, 4]
    assert marks.tokens.shape == (2, 8)


@pytest.mark.parametrize(("length", "lengthened"), [(3, True), (3, False), (8, False)])
def test_another_number_of_tokens_is_refused(length, lengthened):
    with pytest.raises(ConfigError, match=f"expected 4 positions .* got {length}"):
        tokens([2, 4], 4, lengthened=lengthened)(length)


def test_windows_are_reported_by_the_config():
    assert pads_to_windows(SimpleNamespace(attention_window=[4, 4]))
    assert not pads_to_windows(SimpleNamespace())


def test_molecules_are_counted_as_the_model_attends_to_them():
    layout = partial(molecule_marks, tokens([5, 12, 8], 12), 4)
    marks = layout(3)
    assert marks.real.sum(dim=1).tolist() == [2, 3, 2]
    assert marks.special.tolist() == [[True, False, False]] * 3
    assert marks.tokens is None
    assert layout(12).real.sum(dim=1).tolist() == [5, 12, 8]


def test_a_molecule_of_special_characters_is_special():
    layout = tokens([8], 8)
    layout.special[0, :4] = True
    assert molecule_marks(layout, 4, 2).special.tolist() == [[True, True]]


def test_another_number_of_molecules_is_refused():
    with pytest.raises(ConfigError, match="expected 3 positions"):
        molecule_marks(tokens([5, 12], 12), 4, 4)


def test_frames_past_the_end_of_a_clip_do_not_count():
    layout = partial(frame_marks, (2, 5), 6, CPU)
    assert layout(6).real.sum(dim=1).tolist() == [2, 5]
    assert not layout(6).special.any()
    with pytest.raises(ConfigError, match="expected 6 positions"):
        layout(3)


@pytest.mark.parametrize(
    ("patches", "length", "special"), [(9, 11, 2), (9, 4, 0), (None, 4, 0)]
)
def test_positions_before_the_patches_are_special(patches, length, special):
    marks = patch_marks(2, patches, CPU, length)
    assert marks.real.all()
    assert marks.special.sum(dim=1).tolist() == [special, special]
    assert marks.special[:, :special].all()
