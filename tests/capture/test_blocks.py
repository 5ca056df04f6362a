"""The torch twin of a block gives the sums of the block it twins."""

import numpy as np
import pytest
import torch

from isoscope.accumulate import ACCUMULATORS, Block
from isoscope.accumulate.hashing import named_documents
from isoscope.capture.blocks import TensorBlock

PASSES_ROWS_ON = {"Copies", "CentredDirections", "Partitions"}  # those look at rows themselves
KINDS = [kind for kind in ACCUMULATORS if kind.__name__ not in PASSES_ROWS_ON]


def twins(documents, rows_each, *, offset, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(documents), rows_each)
    rows = (rng.normal(size=(len(names), 40)) + offset).astype(dtype)
    rows[3] = 0
    keys = named_documents(names)
    positions = np.tile(np.arange(rows_each), documents).astype(np.uint64)
    return Block(rows, keys, positions), TensorBlock(torch.from_numpy(rows), keys, positions)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("documents", "offset"), [(5, 0.0), (60, 3.0)])
def test_accumulators_cannot_tell_the_twins_apart(kind, documents, offset):
    for block, twin in [twins(documents, 7, offset=offset)]:
        ours, theirs = kind(40), kind(40)
        ours.update(block)
        theirs.update(twin)
        for name, array in ours.state().items():
            scale = max(1.0, float(np.abs(array.astype(float)).max(initial=0.0)))
            np.testing.assert_allclose(
                theirs.state()[name], array, rtol=2e-4, atol=2e-5 * scale, err_msg=name
            )


def test_float64_tensors_are_summed_in_float64():
    block, twin = twins(10, 5, offset=2.0, dtype=np.float64)
    assert twin.sums.energy.sum() == pytest.approx(block.sums.energy.sum(), rel=1e-12)
    np.testing.assert_allclose(twin.squares, block.squares, rtol=1e-12)


def test_bfloat16_is_widened():
    rows = torch.randn(20, 8).to(torch.bfloat16)
    keys = named_documents(np.repeat(np.arange(4), 5))
    twin = TensorBlock(rows, keys, np.arange(20, dtype=np.uint64))
    assert twin.squares == pytest.approx(
        rows.float().square().sum(1).double().numpy(), rel=1e-6
    )
