"""What holds for every feed: checks of batches, and errors that name the document."""

import numpy as np
import pytest
import torch

from isoscope.capture.feed.base import (
    Batch,
    Feed,
    Prepared,
    missing_processor,
    parameters,
    placement,
    wrong_kind,
)


class Echo(Feed):
    def prepare(self, document):
        return Prepared(document.id, {}, 2, 2, False)

    def collate(self, prepared):
        return Batch({}, tuple(each.id for each in prepared), {})


SHORT, LONG = (Prepared(str(n), {}, n, n, False) for n in (2, 3))


def test_a_batch_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one document"):
        Echo(torch.nn.Linear(1, 1)).batch([])


def test_lengths_are_mixed_only_where_padding_is_harmless():
    feed = Echo(torch.nn.Linear(1, 1))
    assert feed.batch([SHORT, LONG]).documents == ("2", "3")
    feed.mixes_lengths = False
    assert feed.batch([SHORT, SHORT]).documents == ("2", "2")
    with pytest.raises(ValueError, match="equal lengths only"):
        feed.batch([SHORT, LONG])


def test_inputs_go_where_the_weights_are():
    half = torch.nn.Linear(2, 2).to(torch.bfloat16)
    assert placement(half) == (torch.device("cpu"), torch.bfloat16)
    assert placement(torch.nn.Identity()) == (torch.device("cpu"), torch.float32)


def test_arguments_of_a_model_are_known(zoo):
    assert "attention_mask" in parameters(zoo.text_model("bert").body)


@pytest.mark.parametrize(
    ("content", "got"),
    [
        ("words", "got text in document 'a' \\(b.txt\\)"),
        (np.zeros(3), "got audio"),
        (np.zeros(3, dtype=int), "got token ids"),
        (np.zeros((2, 3, 3), dtype=np.uint8), r"got an image of shape \(2, 3, 3\)"),
        (np.zeros((2, 2)), r"got an array of shape \(2, 2\)"),
        (None, "got NoneType"),
    ],
)
def test_a_document_of_another_kind_is_named(zoo, content, got):
    error = wrong_kind(zoo.Document("a", content, place="b.txt"), "audio")
    assert error.slug == "corpus-kind"
    with pytest.raises(type(error), match=f"expected audio, {got}"):
        raise error


def test_a_missing_processor_has_an_address():
    assert missing_processor("audio").slug == "processor-missing"
