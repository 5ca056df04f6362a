"""Heads: losses by hand, answers in words, and what stands for a text."""

import numpy as np
import pytest
import torch

from isoscope.lab.sweep.fine_tune import TaskHead


@pytest.fixture
def made(trainer):
    def head(at="mean", **asked):
        held = trainer(**asked)
        torch.manual_seed(0)
        return held, TaskHead(held.width, held.task, held.train, at).eval()

    return head


def test_labels_have_the_cross_entropy_of_torch(made):
    held, head = made(label="stars")
    batch = held.batch(held.train, range(6))
    said = head(held.body(**batch.inputs).last_hidden_state, batch)
    right = torch.from_numpy(held.train.targets[:6])
    expected = torch.nn.functional.cross_entropy(said, right)
    assert torch.equal(head.loss(said, held.train.targets[:6]), expected)
    assert head.predict(said, held.train.select(range(6))) == said.argmax(1).tolist()


def test_scores_are_learnt_in_units_of_their_spread(made):
    held, head = made(score="score")
    targets = held.train.targets[:4]
    said = torch.from_numpy((targets - head.middle) / head.spread)[:, None]
    assert head.loss(said, targets).item() == pytest.approx(0.0, abs=1e-12)
    assert head.predict(said, held.train.select(range(4))) == pytest.approx(targets.tolist())


def test_padding_never_stands_for_a_text(made):
    held, head = made("last", label="stars")
    batch = held.batch(held.train, [0, 1, 2, 3])
    states = held.body(**batch.inputs).last_hidden_state
    alone = [
        head(held.body(**held.batch(held.train, [i]).inputs).last_hidden_state,
             held.batch(held.train, [i]))
        for i in range(4)
    ]  # fmt: skip
    # Float32: a padded batch sums in another order.
    assert torch.allclose(head(states, batch), torch.cat(alone), atol=1e-5)


def test_spans_are_read_as_words_within_the_text(made):
    held, head = made(answer="answer", pair="other")
    some = held.train.select([0, 1])
    said = torch.zeros(2, max(len(o) for o in some.offsets), 2)
    for row, (first, last) in enumerate(some.targets):
        said[row, first, 0] = said[row, last, 1] = 5.0
    said[:, 0] = 50.0  # the first token is no part of the text
    words = head.predict(said, some)
    assert words == [each.target.answers[0] for each in some.examples]


def test_answers_that_were_cut_off_have_no_loss(made):
    _, head = made(answer="answer")
    said = torch.randn(2, 7, 2, requires_grad=True)
    cut = np.array([[-1, -1], [-1, -1]])
    loss = head.loss(said, cut)
    loss.backward()
    assert loss.item() == 0.0 and said.grad.abs().sum() == 0
    padded = torch.full((2, 7, 2), torch.finfo(torch.float32).min)
    assert head.loss(padded, cut).item() == 0.0
    half = np.array([[2, 3], [-1, -1]])
    assert head.loss(said, half).item() == pytest.approx(
        head.loss(said[:1], half[:1]).item(), rel=1e-6
    )


def test_a_text_without_tokens_has_no_words():
    from isoscope.lab.sweep.fine_tune import _span_words

    assert _span_words(np.zeros((2, 2)), np.full((2, 2), -1), "text") == ""
