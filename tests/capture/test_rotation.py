"""Functions that rotate are wrapped while anyone listens, and never longer."""

import sys

import torch
from families import FAMILIES

from isoscope.capture.rotation import observe_rotation


def test_every_listener_sees_what_is_rotated_and_nothing_stays_wrapped():
    family = FAMILIES["llama"]
    model, seen = family.built(), []
    home = sys.modules[type(model).__module__]
    before = home.apply_rotary_pos_emb
    with torch.inference_mode(), observe_rotation(model.modules(), seen.append):
        with observe_rotation(model.modules(), seen.append):
            model(**family.inputs())
        assert len(seen) == 2 * 3  # two listeners, three layers
        assert home.apply_rotary_pos_emb is not before
        model(**family.inputs())
    assert len(seen) == 3 * 3
    assert home.apply_rotary_pos_emb is before
    query, key = seen[0].before
    assert query.shape[1] == family.heads and key.shape[1] == family.key_heads
    for old, new in zip(seen[0].before, seen[0].after, strict=True):
        assert not torch.equal(old, new)
        assert torch.allclose(old.norm(dim=-1), new.norm(dim=-1), atol=1e-5)
