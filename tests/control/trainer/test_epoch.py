"""The matrix of an epoch: from what the model takes, and training does not notice."""

import pytest
import torch
from transformers import AutoModel, AutoModelForSequenceClassification

from isoscope.control import IStar
from isoscope.control.trainer.loop import stream_epoch
from isoscope.errors import PenaltyError


@pytest.fixture
def batches():
    ids = torch.randint(4, 20, (3, 6, 9), generator=torch.manual_seed(1))
    return [
        {"input_ids": each, "attention_mask": torch.ones_like(each), "labels": each[:, 0]}
        for each in ids
    ]


def test_labels_are_excluded_and_no_random_number_is_drawn(tiny, batches):
    model = AutoModelForSequenceClassification.from_pretrained(tiny).train()
    penalty, known = IStar(towards="streamed", tokens=100), IStar()
    before = torch.get_rng_state()

    def shuffled():
        torch.rand(7)
        yield from batches

    stream_epoch(penalty, model, shuffled())
    assert torch.equal(torch.get_rng_state(), before) and model.training
    bare = [{k: v for k, v in each.items() if k != "labels"} for each in batches]
    known.stream(model, bare, tokens=100)
    torch.testing.assert_close(penalty.shrinkage, known.shrinkage)


@pytest.mark.parametrize("batch", [[torch.ones(2, 2)], {"anchor_input_ids": torch.ones(2, 2)}])
def test_batches_that_name_no_inputs_are_reported(tiny, batch):
    with pytest.raises(PenaltyError, match="that name the inputs of the model") as caught:
        stream_epoch(IStar(towards="streamed"), AutoModel.from_pretrained(tiny), [batch])
    assert caught.value.slug == "stream-batches"
