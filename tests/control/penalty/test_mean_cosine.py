"""MeanCosine: linear in the measure, over all pairs or across sequences."""

import numpy as np
import pytest
import torch

from isoscope.api import measure
from isoscope.control import MeanCosine
from isoscope.control.penalty.mean_cosine import cosine_score
from isoscope.control.penalty.row_selection import RowSelection
from isoscope.control.processes import World


def batch(dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(6, 5, 4, generator=generator).double() + 0.7).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("weight", [1.0, -2.0])
def test_the_value_is_the_weight_times_the_measure(weight, dtype):
    hidden = batch(dtype)
    hidden[0, 0] = 0  # a row without a direction counts in neither
    (reading,) = measure(hidden.reshape(-1, 4).numpy(), measures=["mean-cosine"])
    penalty = MeanCosine(weight)
    assert penalty(hidden).item() == pytest.approx(weight * reading.value, abs=1e-6)
    assert penalty.reading == pytest.approx(reading.value, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_across_sequences_it_is_the_measure_across_documents(dtype):
    hidden = batch(dtype)
    hidden[2, 3] = 0
    document = np.repeat([f"text-{i}" for i in range(6)], 5)
    rows = hidden.reshape(-1, 4).numpy()
    (reading,) = measure(rows, measures=["mean-cosine-cross"], document=document)
    value = MeanCosine(across=True)(hidden).item()
    assert value == pytest.approx(reading.value, abs=1e-6)


def test_across_rows_that_are_their_own_documents_nothing_is_excluded():
    rows = batch().reshape(-1, 4)
    assert MeanCosine(across=True)(rows) == MeanCosine()(rows)


def test_one_sequence_has_no_pair_across():
    penalty = MeanCosine(across=True)
    assert penalty(batch()[:1]).item() == 0
    assert penalty.reading is None


def test_each_layer_counts_by_itself():
    layers = [batch(seed=s) * (1 + s) for s in range(3)]
    each = [MeanCosine()(layer).item() for layer in layers]
    assert MeanCosine()(layers).item() == pytest.approx(np.mean(each))
    union = torch.cat([layer.reshape(-1, 4) for layer in layers])
    assert MeanCosine(per_layer=False)(layers).item() == pytest.approx(
        MeanCosine()(union).item()
    )


def test_a_process_without_rows_adds_nothing():
    empty = RowSelection([], [0], torch.zeros(0, dtype=torch.int64), independent=False)
    outcome = cosine_score(torch.zeros(0, 4), empty, World(), across=True)
    assert not outcome.defined
