"""The stable covariance from a pass over batches."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from isoscope.control import IStar
from isoscope.control.penalty.isoscore_star import check_matrix, streamed
from isoscope.errors import ConfigError, PenaltyError


class Block(nn.Linear):
    """A layer whose rows are a hundred spreads away from zero."""

    def forward(self, rows):
        return super().forward(rows) + 100.0


class Toy(nn.Module):
    """Two layers over embeddings, with dropout."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(20, 5)
        self.blocks = nn.ModuleList([Block(5, 5), Block(5, 5)])
        self.frozen = nn.Dropout(0.5).eval()
        self.dropout = nn.Dropout(0.5)

    def forward(self, input_ids, attention_mask=None):
        assert not self.dropout.training
        states = [self.embed(input_ids)]
        for block in self.blocks:
            states.append(block(self.dropout(states[-1])))
        return states


NAMES = ["blocks.0", "blocks.1"]
stream = partial(streamed, modules=NAMES)


def batches(count=4):
    generator = torch.Generator().manual_seed(1)
    for _ in range(count):
        ids = torch.randint(20, (3, 6), generator=generator)
        mask = torch.ones(3, 6, dtype=torch.int64)
        mask[1, 4:] = 0
        yield {"input_ids": ids, "attention_mask": mask}


def by_definition(most=10**9, layer=None):
    """Return the covariance of the rows, all of them kept."""
    model, rows = Toy().eval(), [[], []]
    for batch in batches():
        states = model(**batch)[1:]
        for each, state in zip(rows, states, strict=True):
            each.extend(state[batch["attention_mask"] == 1].detach().double().numpy())
    chosen = rows if layer is None else [rows[layer]]
    return np.cov(np.concatenate([np.array(each)[:most] for each in chosen]).T)


@pytest.mark.parametrize("tokens", [250_000, 40, 16])
def test_it_is_the_covariance_of_the_first_real_tokens(tokens):
    found = stream(Toy(), batches(), tokens=tokens)
    # float32 hidden states a hundred spreads away from zero
    np.testing.assert_allclose(found, by_definition(tokens), rtol=1e-6, atol=3e-5)
    assert found.dtype == torch.float32


def test_each_layer_can_have_its_own():
    found = stream(Toy(), batches(), per_layer=True)
    assert found.shape == (2, 5, 5)
    for layer in range(2):
        np.testing.assert_allclose(
            found[layer], by_definition(layer=layer), rtol=1e-6, atol=3e-5
        )
    last = stream(Toy(), batches(), layers="last")
    torch.testing.assert_close(last, found[1])


def test_batches_beyond_the_limit_are_not_requested():
    taken = []

    def counting():
        for number, batch in enumerate(batches()):
            taken.append(number)
            yield batch

    stream(Toy(), counting(), tokens=17)
    assert taken == [0, 1, 2]  # sixteen real tokens each; the third is fetched and not run


def test_the_model_is_left_in_the_mode_it_was_in():
    model = Toy().train()
    model.frozen.eval()
    stream(model, batches())
    assert model.dropout.training
    assert not model.frozen.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_a_batch_of_padding_adds_nothing():
    empty = {name: value * 0 for name, value in next(batches()).items()}
    found = stream(Toy(), [empty, *batches(), empty])
    torch.testing.assert_close(found, stream(Toy(), batches()))


def test_rows_that_are_not_finite_are_excluded():
    model = Toy()
    with torch.no_grad():
        model.embed.weight[3] = torch.inf
    assert stream(model, batches()).isfinite().all()


def test_a_penalty_takes_it_as_its_own():
    penalty = IStar(zeta=0.3)
    model = Toy()
    penalty.stream(model, batches(), tokens=40, modules=NAMES)
    torch.testing.assert_close(penalty.shrinkage, stream(model, batches(), tokens=40))
    rows = torch.randn(30, 5, generator=torch.Generator().manual_seed(2))
    assert penalty(rows) == IStar(zeta=0.3, towards=penalty.shrinkage)(rows)
    assert penalty(rows) != IStar(zeta=0.3)(rows)
    other = IStar(zeta=0.3)
    other.load_state_dict(penalty.state_dict())
    assert other(rows) == penalty(rows)


@pytest.mark.parametrize("given", [[], [{"input_ids": torch.zeros(1, 1, dtype=torch.int64)}]])
def test_without_two_tokens_there_is_no_matrix(given):
    if not given:
        with pytest.raises(PenaltyError, match="at least 2 real tokens"):
            stream(Toy(), given)
        return
    with pytest.raises(PenaltyError, match="at least 2 real tokens"):
        stream(Toy(), given, layers="last")


def test_batches_have_names():
    with pytest.raises(PenaltyError, match="expected batches of named tensors, got list"):
        stream(Toy(), [[1, 2]])


def test_a_limit_below_two_is_refused():
    with pytest.raises(ConfigError, match="expected 2 tokens or more"):
        stream(Toy(), batches(), tokens=1)


def test_a_matrix_is_copied_and_widened():
    given = torch.eye(3).half()
    kept = check_matrix(given)
    assert kept.dtype == torch.float32
    given[0, 0] = 7
    assert kept[0, 0] == 1
