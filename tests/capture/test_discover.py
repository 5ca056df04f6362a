"""The plan has a tap for every site that a module says or hears as a whole."""

import pytest
import torch
from families import FAMILIES
from torch import nn

from isoscope.capture.discover import is_flat, plan_taps
from isoscope.capture.stacks import BlockRun, Trace, find_stacks
from isoscope.capture.tap import listening
from isoscope.errors import SourceError


def model_and_taps(name):
    family = FAMILIES[name]
    model = family.built()
    return model, plan_taps(Trace(model, find_stacks(model)), lambda: model(**family.inputs()))


def heard_at(model, taps, inputs):
    heard = {}
    with torch.no_grad(), listening(model, list(taps.values()), heard.__setitem__):
        output = model(**inputs)
    return heard, output


@pytest.mark.parametrize(
    ("name", "norm"),
    [
        ("bert", "encoder.layer.2.output.LayerNorm"),
        ("llama", "norm"),
        ("gpt_neox", "final_layer_norm"),
        ("wav2vec2", "encoder.layers.2.final_layer_norm"),
        ("wav2vec2-large", "encoder.layer_norm"),
    ],
)
def test_the_final_norm_is_found(name, norm):
    _, taps = model_and_taps(name)
    assert {taps[f"norm.{part}"].module for part in ("in", "mid", "out")} == {norm}


def test_both_halves_of_an_encoder_decoder_end_with_their_own_norm():
    _, taps = model_and_taps("bart")
    assert taps["enc.norm.out"].module == "encoder.layers.2.final_layer_norm"
    assert taps["dec.norm.out"].module == "decoder.layers.1.final_layer_norm"


def test_the_shared_block_of_albert_has_a_tap_for_each_of_its_runs():
    _, taps = model_and_taps("albert")
    runs = [taps[f"resid.{layer}"] for layer in range(3)]
    assert len({tap.module for tap in runs}) == 1
    assert [tap.call for tap in runs] == [0, 1, 2]
    assert taps["norm.out"].call == 2


def test_tensors_are_those_of_the_model():
    model, taps = model_and_taps("llama")
    heard, output = heard_at(model, taps, FAMILIES["llama"].inputs())
    assert torch.equal(heard["norm.in"], heard["resid.2"])
    assert torch.equal(heard["norm.out"], output.last_hidden_state)
    assert torch.equal(
        heard["embed"], model.embed_tokens(FAMILIES["llama"].inputs()["input_ids"])
    )


def test_flattened_tokens_are_unfolded():
    _, taps = model_and_taps("opt")
    assert taps["mlp.1"].within == "decoder.layers.1"
    place = BlockRun("", 1, "decoder.layers.1", (2, 6, 32))
    assert is_flat(torch.empty(12, 32), place)
    assert not is_flat(torch.empty(2, 6, 32), place)


class Aside(nn.Module):
    """A model that goes past the call of its blocks."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])

    def forward(self, x):
        for block in self.blocks:
            x = block.forward(x)
        return x


def test_blocks_that_are_never_called_are_no_blocks():
    model = Aside()
    with pytest.raises(SourceError, match="never called as such: blocks"):
        plan_taps(Trace(model, find_stacks(model)), lambda: model(torch.ones(1, 2)))
