"""Which rows are taken: real ones, within the budget, each with the same chance."""

import numpy as np
import pytest
import torch

from isoscope.control.penalty.row_selection import (
    LayerSpec,
    RealTokens,
    RowSelection,
    documents_of,
    sum_dtype,
)
from isoscope.control.processes import World
from isoscope.errors import PenaltyError

HIDDEN = torch.arange(2.0 * 3 * 2).reshape(2, 3, 2)
MASK = torch.tensor([[1, 1, 0], [0, 1, 1]])


def shared(counts, rank, places=None):
    """Return the tokens of one of several processes."""
    mine, documents = counts[rank]
    places = np.arange(mine) if places is None else places
    numbers = np.arange(mine) * documents // max(mine, 1)
    return RealTokens(places, numbers, True, False, counts, rank)


def test_only_real_tokens_are_taken():
    tokens = RealTokens.of(HIDDEN, MASK, None, World())
    assert tokens.places.tolist() == [0, 1, 4, 5]
    assert tokens.documents.tolist() == [0, 0, 1, 1]
    assert (tokens.total, tokens.total_documents) == (4, 2)
    cloud = RowSelection.of(tokens, [HIDDEN, HIDDEN + 100], None, (0,))
    flat = HIDDEN.reshape(-1, 2)[[0, 1, 4, 5]]
    assert torch.equal(cloud.gather([HIDDEN, HIDDEN + 100]), torch.cat([flat, flat + 100]))


def test_rows_of_a_matrix_are_their_own_documents():
    assert RealTokens.of(HIDDEN[0], None, None, World()).independent
    assert not RealTokens.of(HIDDEN[0], None, [0, 0, 1], World()).independent
    assert not RealTokens.of(HIDDEN, None, None, World()).independent


def test_gradients_go_back_to_where_rows_came_from():
    layers = [HIDDEN, HIDDEN + 100]
    tokens = RealTokens.of(HIDDEN, MASK, None, World())
    for halved in (False, True):
        cloud = RowSelection.of(tokens, layers, 5, (0,), halved=halved)
        assert sum(cloud.sizes) == 5
        rows = cloud.gather(layers)
        spread = torch.stack(
            cloud.scatter(rows, [LayerSpec(x.shape, x.dtype, x.device) for x in layers])
        )
        taken = spread != 0
        assert torch.equal(spread[taken], torch.stack(layers)[taken])
        assert not spread[:, MASK == 0].any()


def test_a_whole_layer_is_not_copied():
    tokens = RealTokens.of(HIDDEN, None, None, World())
    cloud = RowSelection.of(tokens, [HIDDEN], 2048, (0,))
    assert cloud.pieces == [(0, None)]
    assert cloud.gather([HIDDEN]).data_ptr() == HIDDEN.data_ptr()


def test_halves_have_half_of_the_documents_each():
    tokens = RealTokens.of(torch.zeros(9, 4, 2), None, None, World())
    halves = tokens.halves((0,)).reshape(9, 4)
    assert (halves == halves[:, :1]).all()  # a document is never cut
    assert halves[:, 0].sum() in (4, 5)
    assert any((tokens.halves((seed,)).reshape(9, 4) != halves).any() for seed in range(5))


def test_every_row_has_the_same_chance():
    tokens = RealTokens.of(torch.zeros(1, 20, 2), None, None, World())
    taken = np.zeros((3, 20))
    for seed in range(2000):
        for layer, picked in enumerate(tokens.draw(3, 6, (seed,))):
            taken[layer, picked] += 1
    assert taken.sum() == 2000 * 6
    # 200 expected in each of 60 cells; 5 standard deviations are 67
    assert abs(taken - 200).max() < 67


def test_a_budget_that_is_large_enough_takes_all():
    tokens = shared([[20, 2]], 0)
    for budget in (40, None):
        assert [len(each) for each in tokens.draw(2, budget, (0,))] == [20, 20]
    assert sum(len(each) for each in tokens.draw(2, 39, (0,))) == 39


def test_processes_share_one_sample_of_all_their_rows():
    counts = [[5, 2], [0, 0], [20, 4]]
    parts = [shared(counts, rank).draw(2, 4, (7,)) for rank in range(3)]
    (whole,) = [shared([[25, 6]], 0).draw(2, 12, (7,))]
    for layer in range(2):
        joined = np.concatenate([parts[0][layer], parts[1][layer], parts[2][layer] + 5])
        assert joined.tolist() == whole[layer].tolist()


def test_processes_deal_their_documents_as_one():
    counts = [[4, 2], [0, 0], [8, 4]]
    parts = [shared(counts, rank).halves((3,)) for rank in range(3)]
    whole = shared([[12, 6]], 0).halves((3,))
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_documents_may_be_given_by_sequence_or_by_token():
    by_sequence = documents_of((2, 3), [5, 9])
    assert by_sequence.tolist() == [[5, 5, 5], [9, 9, 9]]
    assert documents_of((2, 3), torch.arange(6).reshape(2, 3)).tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    with pytest.raises(PenaltyError, match=r"expected documents of shape \(2,\) or \(2, 3\)"):
        documents_of((2, 3), [1, 2, 3])


def test_sums_are_made_in_float32_or_better():
    kinds = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    assert [sum_dtype(kind).itemsize for kind in kinds] == [4, 4, 4, 8]
