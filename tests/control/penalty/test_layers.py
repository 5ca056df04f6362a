"""Hidden states in all the shapes they come in."""

from types import SimpleNamespace

import pytest
import torch

from isoscope.control.penalty.row_selection import real_places, select_layers
from isoscope.errors import PenaltyError

LAYERS = [torch.full((2, 3, 4), float(i)) for i in range(4)]


def numbers(hidden, layers="all"):
    return [int(each.flatten()[0]) for each in select_layers(hidden, layers)]


def test_a_tensor_is_one_layer():
    assert numbers(LAYERS[2]) == numbers(LAYERS[2], "last") == numbers(LAYERS[2], 0) == [2]


def test_a_list_is_taken_as_it_is():
    assert numbers(LAYERS) == [0, 1, 2, 3]
    assert numbers(tuple(LAYERS), "last") == [3]
    assert numbers(LAYERS, [0, -1]) == [0, 3]


@pytest.mark.parametrize("wrap", [dict, lambda **parts: SimpleNamespace(**parts)])
def test_the_input_of_block_0_is_no_layer_of_a_model(wrap):
    output = wrap(hidden_states=tuple(LAYERS), logits=None)
    assert numbers(output) == [1, 2, 3]
    assert numbers(output, 0) == [1]
    assert numbers(output, "last") == [3]


def test_the_output_of_a_real_model_is_understood(tiny):
    from transformers import AutoModel

    model = AutoModel.from_pretrained(tiny).eval()
    ids = torch.arange(8).reshape(2, 4)
    output = model(input_ids=ids, output_hidden_states=True)
    found = select_layers(output, "all")
    assert len(found) == model.config.num_hidden_layers
    assert torch.equal(found[-1], output.last_hidden_state)
    with pytest.raises(PenaltyError, match="got one without") as caught:
        select_layers(model(input_ids=ids), "all")
    assert "output_hidden_states=True" in caught.value.hint
    assert "model.config.output_hidden_states = True" in caught.value.hint


def test_two_stacks_are_distinguished():
    output = SimpleNamespace(hidden_states=None, decoder_hidden_states=LAYERS)
    with pytest.raises(PenaltyError) as caught:
        select_layers(output, "all")
    assert "output.decoder_hidden_states[1:]" in caught.value.hint


@pytest.mark.parametrize(
    ("hidden", "match"),
    [
        ("resid.3", "a list of them or a model output, got str"),
        ([], "got list"),
        (None, "got NoneType"),
        (torch.ones(2, 3, dtype=torch.int64), "got torch.int64"),
        ([LAYERS[0], None], "got NoneType"),
        (torch.ones(4), r"got 1 dimensions \(4,\)"),
        (torch.ones(1, 2, 3, 4), r"got 4 dimensions \(1, 2, 3, 4\)"),
        ([LAYERS[0], LAYERS[0][:1]], r"of the same rows \(2, 3\), got \(1, 3\)"),
    ],
)
def test_what_is_no_hidden_state_is_refused(hidden, match):
    with pytest.raises(PenaltyError, match=match):
        select_layers(hidden, "all")


@pytest.mark.parametrize("layers", [4, -5, [0, 9], ["first"], "middle"])
def test_layers_that_are_not_there_are_refused(layers):
    with pytest.raises(PenaltyError, match="expected layers from 0 to 3, got"):
        select_layers(LAYERS, layers)


def test_a_mask_says_which_places_are_real():
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    assert real_places(LAYERS[0], mask).tolist() == [True, True, False, True, False, False]
    assert real_places(LAYERS[0], None) is None


@pytest.mark.parametrize("shape", [(3, 2), (2, 4), (6,), (2, 1, 1, 3)])
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(PenaltyError, match=r"expected a mask of shape \(2, 3\), got"):
        real_places(LAYERS[0], torch.ones(shape))


def test_a_mask_to_be_added_is_refused():
    with pytest.raises(PenaltyError, match="got negative numbers"):
        real_places(LAYERS[0], torch.tensor([[0.0, 0.0, -1e4], [0.0, -1e4, -1e4]]))
