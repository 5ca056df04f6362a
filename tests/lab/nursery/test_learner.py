"""Windows of text, the loss of a learner, and how large its model is, without any training."""

import numpy as np
import pytest
import torch
from nursery_texts import TEXTS, TINY

from isoscope.lab.nursery.architecture import build_model, count_parameters
from isoscope.lab.nursery.learner import Learner
from isoscope.lab.nursery.results import TrainedStep, metrics_csv
from isoscope.lab.nursery.spec import TrainSpec
from isoscope.lab.nursery.windows import HELD_OUT, SPECIAL, open_windows
from isoscope.lab.nursery.worker import parameter_counts


def spec_of(**options):
    return TrainSpec.of(**{**TINY, **options})


def test_windows_hold_all_tokens_of_the_documents_with_an_end_after_each():
    windows = open_windows(spec_of(), TEXTS)
    assert windows.train.shape[1] == windows.held_out.shape[1] == 16
    ends = (windows.train == 0).sum() + (windows.held_out == 0).sum()
    assert 58 <= ends <= 60  # but for what fills no window
    said = windows.tokenizer.decode(windows.train[0].tolist())
    assert said in "".join(TEXTS) and len(said) == 16


def test_the_unigram_entropy_of_text_is_that_of_the_tokens_that_are_predicted():
    windows = open_windows(spec_of(), TEXTS)
    predicted = windows.held_out[:, 1:].ravel()
    shares = np.array([np.mean(predicted == token) for token in set(predicted.tolist())])
    assert windows.unigram_entropy == pytest.approx(-(shares * np.log(shares)).sum())
    assert windows.floor is None


def test_no_text_of_a_language_is_read_twice_and_held_out_ones_are_always_the_same():
    one, other = (
        open_windows(spec_of(language="zipf", vocabulary=64, steps=5, seed=seed))
        for seed in (0, 1)
    )
    assert one.train.shape == (20, 16) and not np.array_equal(one.train, other.train)
    assert np.array_equal(one.held_out, other.held_out)
    assert one.held_out.size == HELD_OUT
    assert one.train.min() >= len(SPECIAL)


def test_masks_follow_from_the_seed_and_every_text_has_one():
    windows = open_windows(spec_of(objective="masked"), TEXTS)
    mask = windows.draw_mask(windows.train, (0, 7))
    assert mask.any(axis=1).all() and 0.1 < mask.mean() < 0.3
    assert np.array_equal(mask, windows.draw_mask(windows.train, (0, 7)))
    assert not np.array_equal(mask, windows.draw_mask(windows.train, (0, 8)))


@pytest.mark.parametrize("objective", ["causal", "masked"])
def test_the_held_out_loss_is_the_mean_over_predicted_tokens(objective):
    spec = spec_of(objective=objective)
    windows = open_windows(spec, TEXTS)
    learner = Learner(spec, windows, None)
    texts = torch.from_numpy(windows.held_out)
    mask = torch.from_numpy(windows.held_out_mask)
    with torch.no_grad():
        if objective == "causal":
            said = learner.model(texts).logits[:, :-1].log_softmax(dim=-1)
            wanted = -said.gather(2, texts[:, 1:, None]).mean()
        else:
            said = learner.model(texts.masked_fill(mask, 1)).logits.log_softmax(dim=-1)
            wanted = -said.gather(2, texts[..., None])[..., 0][mask].mean()
    assert learner.held_out_loss() == pytest.approx(float(wanted), rel=1e-5)


def test_parameters_are_counted_without_building_a_model():
    for options in ({}, {"tied": True}, {"norm_place": "post"}, {"mixer": "convolution"}):
        spec = spec_of(**options)
        assert parameter_counts(spec, 300) == count_parameters(build_model(spec, 300))


def test_metrics_are_written_so_that_they_come_back():
    text = metrics_csv([TrainedStep(3, 192, 1 / 3, 0.1 + 0.2)])
    step, tokens, loss, held_out = text.splitlines()[1].split(",")
    assert (int(step), int(tokens)) == (3, 192)
    assert (float(loss), float(held_out)) == (1 / 3, 0.1 + 0.2)
