"""Arrays in memory: NumPy, torch, lists of rows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isoscope.errors import RowError, SourceError
from isoscope.source import open_source

matrices = hnp.arrays(
    dtype=st.one_of(
        hnp.floating_dtypes(sizes=(16, 32, 64), endianness="?"), hnp.integer_dtypes()
    ),
    shape=hnp.array_shapes(min_dims=2, max_dims=2, max_side=8),
)


@given(rows=matrices, turned=st.booleans(), size=st.integers(1, 9))
def test_arrays_give_their_rows(rows, turned, size, whole):
    rows = rows.T if turned else rows
    source = open_source(rows)
    np.testing.assert_array_equal(whole(source, size), rows)
    assert source.name == "rows" and source.rows == len(rows) and source.rereadable


def test_chunks_are_views_of_the_array(cloud):
    rows = cloud()
    assert np.shares_memory(next(open_source(rows).chunks(7)).rows, rows)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "bool"])
@pytest.mark.parametrize("grad", [False, True])
def test_tensors_give_their_rows(dtype, grad, whole):
    torch.manual_seed(0)
    tensor = (torch.randn(50, 4) * 9).to(getattr(torch, dtype))
    expected = tensor.double().numpy()
    if grad and tensor.is_floating_point():
        tensor.requires_grad_()
    source = open_source(tensor)
    np.testing.assert_array_equal(whole(source, 7), expected)
    assert source.dtype == dtype
    assert source.fingerprint == open_source(tensor.detach().clone()).fingerprint


def test_a_float8_tensor_is_widened(whole):
    tensor = torch.randn(5, 3).to(torch.float8_e4m3fn)
    np.testing.assert_array_equal(whole(open_source(tensor)), tensor.float().numpy())


class FarTensor:
    """A tensor on another device: whole it cannot be had, only rows brought over one by one."""

    device = "far:0"

    def __init__(self, tensor, moved):
        self.tensor, self.moved = tensor, moved
        self.dtype, self.shape = tensor.dtype, tensor.shape

    def detach(self):
        return self

    def __getitem__(self, some):
        return FarTensor(self.tensor[some], self.moved)

    def float(self):
        return FarTensor(self.tensor.float(), self.moved)

    def cpu(self):
        self.moved.append(len(self.tensor))
        return self.tensor


def test_a_tensor_elsewhere_is_fetched_chunk_by_chunk(whole):
    moved = []
    tensor = torch.randn(50, 4).bfloat16()
    source = open_source(FarTensor(tensor, moved))
    np.testing.assert_array_equal(whole(source, 7), tensor.float().numpy())
    assert max(moved) == 7


@pytest.mark.parametrize(
    "rows",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        [np.array([1, 2]), np.array([3, 4])],
        np.array([np.array([1, 2]), np.array([3, 4]), None], dtype=object)[:2],
        [torch.tensor([1, 2]), torch.tensor([3, 4])],
    ],
)
def test_sequences_of_rows_are_read(rows, whole):
    source = open_source(rows)
    np.testing.assert_array_equal(whole(source, 1), [[1, 2], [3, 4]])
    assert source.fingerprint


@pytest.mark.parametrize(
    ("rows", "words", "slug"),
    [
        (np.ones(3), "the array, got 1 dimension", "not-two-dimensional"),
        (np.array(1.0), "got 0 dimensions", "not-two-dimensional"),
        (np.ones((2, 2, 2)), "got 3 dimensions", "not-two-dimensional"),
        (np.ones((2, 0)), "got width 0", "width-zero"),
        (np.ones((0, 2)), "got 0 rows", "no-rows"),
        (np.ones((2, 2), dtype=complex), "got complex", "complex-numbers"),
        (np.array([["a"]]), "got strings", "strings"),
        (np.array([[None]]), "objects", "objects"),
        ([], "got 0 rows", "no-rows"),
        ([1, 2], "got 1 dimension", "not-two-dimensional"),
        (["a", "b"], "got strings", "strings"),
        ([[[1]]], "got 3 dimensions", "not-two-dimensional"),
        ([[1, [2]]], "expected rows of numbers in the list, got list", "vectors-kind"),
        (torch.ones(3), "the tensor, got 1 dimension", "not-two-dimensional"),
        (torch.ones(2, 2, dtype=torch.complex64), "got complex", "complex-numbers"),
        (torch.ones(2, 2, device="meta"), "float32 on meta", "tensor-kind"),
        (torch.eye(3).to_sparse(), "expected a dense tensor", "tensor-kind"),
        (np.ma.masked_equal([[1.0, 2.0]], 2.0), "masked", "masked"),
    ],
)
def test_what_is_no_array_of_vectors_is_refused(rows, words, slug):
    with pytest.raises(SourceError, match=words) as caught:
        open_source(rows)
    assert caught.value.slug == slug


def test_a_ragged_list_names_the_row(whole):
    source = open_source([[1, 2], [3, 4], [5]])
    with pytest.raises(RowError, match="expected 2 numbers in row 2 of the list"):
        whole(source, 2)


def test_the_fingerprint_tells_arrays_apart(cloud):
    rows = cloud(n=1000)
    prints = {
        open_source(each).fingerprint for each in (rows, rows + 1, rows[:-1], rows[:, :2])
    }
    assert len(prints) == 4
    assert open_source(rows.copy()).fingerprint in prints
    assert len(open_source(rows).fingerprint) == 32
