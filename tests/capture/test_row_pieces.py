"""Pieces hold every row once, never two documents, and their sums are those of the rows."""

import numpy as np
import pytest
import torch

from isoscope.accumulate import ArrayBlock
from isoscope.capture.row_pieces import PIECE, RowPieces
from isoscope.hashing import named_documents

SIZES = (1, 3, 40, 7, 600, 2)


def cut(sizes=SIZES):
    """Return documents cut into pieces, and the cells they were cut by."""
    keys = named_documents(np.repeat(np.arange(len(sizes)), sizes))
    block = ArrayBlock(np.empty((len(keys), 0), dtype=np.float32), keys)
    ordered = keys[block.cells.order]
    starts = np.r_[0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered)]
    return RowPieces.split(torch.arange(len(keys)), block.cells, starts), block


def test_every_row_is_in_one_place_and_the_rest_is_blank():
    pieces, block = cut()
    assert (pieces.index[pieces.taken].numpy() == block.cells.order).all()
    places = np.sort(np.r_[pieces.taken, pieces.blank.numpy()])
    assert (places == np.arange(len(pieces.index))).all()
    assert pieces.length <= PIECE


def test_no_piece_has_rows_of_two_documents():
    pieces, block = cut()
    documents = block.documents[pieces.index.numpy()].reshape(-1, pieces.length)
    assert (documents == documents[:, :1]).all()


def test_sums_of_pieces_add_up_to_those_of_cells_and_documents():
    pieces, block = cut()
    rows = torch.randn(len(block), 4, generator=torch.Generator().manual_seed(1)).double()
    side = torch.zeros(len(pieces.index), 2, dtype=torch.float64)
    side[torch.from_numpy(pieces.taken)] = torch.tensor([1.0, 2.0], dtype=torch.float64)
    summed = pieces.sum_pieces(side, rows[pieces.index])
    for key, found in zip(block.cells.keys, pieces.into_cells(summed), strict=True):
        wanted = rows[torch.from_numpy(block.documents == key)].sum(dim=0)
        assert found[0].numpy() == pytest.approx(wanted.numpy())
        assert found[1].numpy() == pytest.approx(2 * wanted.numpy())
    assert pieces.into_units(summed.numpy())[:, 0].sum(axis=0) == pytest.approx(
        rows.sum(dim=0).numpy()
    )
