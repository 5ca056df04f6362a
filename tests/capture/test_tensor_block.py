"""The torch twin of a block gives the sums of the block it twins."""

import numpy as np
import pytest
import torch

from isoscope.accumulate import ACCUMULATORS, ArrayBlock, Moments
from isoscope.capture.tensor_block import TensorBlock, TensorLayout
from isoscope.hashing import named_documents

KINDS = list(ACCUMULATORS)


def every_row(keys, positions, **more):
    return TensorLayout(keys, positions, torch.arange(len(keys)), **more)


def twins(documents, rows_each, *, offset, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    names = np.repeat(np.arange(documents), rows_each)
    rows = (rng.normal(size=(len(names), 40)) + offset).astype(dtype)
    rows[3] = 0
    keys = named_documents(names)
    positions = np.tile(np.arange(rows_each), documents).astype(np.uint64)
    tokens = rng.integers(0, 12, size=len(rows))
    tensor = torch.from_numpy(rows)
    members = {"tokens": tokens, "frequency": (tokens % 5).astype(np.int8)}
    layout = every_row(keys, positions, **members)
    block = ArrayBlock(rows, keys, positions, **members)
    return block, TensorBlock(tensor, layout)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("documents", "length", "offset"),
    [(5, 7, 0.0), (60, 7, 3.0), (300, 2, 3.0)],
)
def test_accumulators_cannot_tell_the_twins_apart(kind, documents, length, offset):
    for block, twin in [twins(documents, length, offset=offset)]:
        ours, theirs = kind(40), kind(40)
        ours.update(block)
        theirs.update(twin)
        for name, array in ours.state().items():
            scale = max(1.0, float(np.abs(array.astype(float)).max(initial=0.0)))
            np.testing.assert_allclose(
                theirs.state()[name], array, rtol=2e-4, atol=2e-5 * scale, err_msg=name
            )


@pytest.mark.parametrize("axes", [None, np.eye(40)[:, :3] + 0.5], ids=["all", "some"])
def test_wide_sums_of_the_twins_are_equal(axes):
    block, twin = twins(60, 40, offset=3.0)  # more rows than are float64 at once
    assert (block.origin != twin.origin).any()
    rows = block.rows.astype(np.float64)
    half = block.documents % 2
    for each in (block, twin):
        for number, (total, product) in enumerate(each.wide_sums(axes)):
            z = rows[half == number] - each.origin
            np.testing.assert_allclose(total, z.sum(axis=0), atol=1e-4)
            exact = z.T @ (z if axes is None else z @ axes)
            np.testing.assert_allclose(product, exact, rtol=1e-6, atol=1e-3)


def test_a_direction_that_no_row_of_a_tensor_has_stays_empty():
    rng = np.random.default_rng(8)
    normed = torch.nn.functional.layer_norm(
        torch.from_numpy(rng.normal(size=(2000, 40))), (40,)
    )
    rows = (normed * torch.linspace(0.5, 2, 40)).float() + 1
    keys = named_documents(np.repeat(np.arange(40), 50))
    layout = every_row(keys, np.tile(np.arange(50), 40).astype(np.uint64))
    moments = Moments(40)
    moments.update(TensorBlock(rows, layout))
    exact = np.linalg.eigvalsh(np.cov(rows.double().numpy().T))
    found = np.linalg.eigvalsh(moments.finalize().covariance)
    np.testing.assert_allclose(found[1:], exact[1:], rtol=1e-5)
    assert abs(found[0]) < 1e-13 * exact[-1] > abs(exact[0])


def test_float64_tensors_are_summed_in_float64():
    block, twin = twins(10, 5, offset=2.0, dtype=np.float64)
    assert twin.sums.energy.sum() == pytest.approx(block.sums.energy.sum(), rel=1e-12)
    np.testing.assert_allclose(twin.squares, block.squares, rtol=1e-12)


def test_bfloat16_is_widened():
    rows = torch.randn(20, 8).to(torch.bfloat16)
    keys = named_documents(np.repeat(np.arange(4), 5))
    twin = TensorBlock(rows, every_row(keys, np.arange(20, dtype=np.uint64)))
    assert twin.squares == pytest.approx(
        rows.float().square().sum(1).double().numpy(), rel=1e-6
    )


def test_some_rows_of_a_batch_are_as_good_as_all_of_a_smaller_one():
    rng = np.random.default_rng(2)
    batch = torch.from_numpy(rng.normal(size=(3 * 8, 6)).astype(np.float32))
    batch[::5] = torch.nan  # padding may hold anything
    index = torch.tensor([1, 2, 3, 8, 9, 11, 16, 17, 18])
    keys = named_documents(np.repeat(np.arange(3), 3))
    positions = np.tile(np.arange(3), 3).astype(np.uint64)
    twin = TensorBlock(batch, TensorLayout(keys, positions, index))
    block = ArrayBlock(batch[index].numpy(), keys, positions)
    for name in ("total", "units", "energy", "cubic", "sketch", "trace", "quartic"):
        np.testing.assert_allclose(
            getattr(twin.sums, name), getattr(block.sums, name), rtol=1e-5, atol=1e-5
        )
    np.testing.assert_allclose(twin.rows[np.array([4])], batch[[9]].numpy())


def test_long_documents_are_summed_piece_by_piece():
    rng = np.random.default_rng(4)
    rows = torch.from_numpy(rng.normal(size=(1700, 5)).astype(np.float32) + 7)
    keys = named_documents(np.repeat(np.arange(2), [1500, 200]))
    positions = np.r_[np.arange(1500), np.arange(200)].astype(np.uint64)
    twin = TensorBlock(rows, every_row(keys, positions))
    block = ArrayBlock(rows.numpy(), keys, positions)
    assert len(twin.layout.pieces.by_cell.T) > 2
    for ours, theirs in zip(twin.document_squares, block.document_squares, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    np.testing.assert_allclose(twin.sums.units, block.sums.units, rtol=1e-5)


def test_a_giant_among_the_rows_is_summed_in_double_precision():
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(4000, 4)).astype(np.float32)
    rows[7] *= 1e6
    keys = named_documents(np.repeat(np.arange(40), 100))
    positions = np.tile(np.arange(100), 40).astype(np.uint64)
    tensor = torch.from_numpy(rows)
    twin = TensorBlock(tensor, every_row(keys, positions))
    assert twin.sums.sketch.dtype == np.float64
    assert twin.scatters[0].dtype == np.float64
    block = ArrayBlock(rows, keys, positions)
    np.testing.assert_allclose(twin.sums.quartic, block.sums.quartic, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_under_labels_are_summed_as_the_block_sums_them(dtype):
    block, twin = twins(50, 9, offset=2.0, dtype=dtype)
    rng = np.random.default_rng(6)
    chosen = np.flatnonzero(rng.random(len(block)) < 0.3)
    labels = rng.choice([0, 1, 4], size=len(chosen))  # nothing under 2 and 3
    for ours, theirs in zip(
        block.unit_sums(chosen, labels, 5), twin.unit_sums(chosen, labels, 5), strict=True
    ):
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-5)
    for name in ("keys", "units", "total", "nonzero", "rows"):
        ours, theirs = (getattr(each.by_document, name) for each in (block, twin))
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-4)


def test_half_precision_rows_are_widened_before_they_are_summed():
    rows = torch.randn(20, 8, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    keys = named_documents(np.repeat(np.arange(4), 5))
    twin = TensorBlock(rows, every_row(keys, np.arange(20, dtype=np.uint64)))
    wide = rows.double().numpy()
    units = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    found, count = twin.unit_sums(np.arange(20), np.zeros(20, dtype=int), 1)
    np.testing.assert_allclose(found[0], units.sum(axis=0), atol=1e-5)
    assert count.tolist() == [20]
