"""The sums of a block, against loops over its rows."""

import numpy as np
import pytest


@pytest.mark.parametrize("documents", [5, 40])
def test_the_sums_of_every_document_equal_plain_loops(make_block, documents):
    rng = np.random.default_rng(3)
    rows = rng.normal(2.0, 1.0, (4 * documents, 6))
    rows[7] = 0
    block = make_block(rows, [4] * documents)
    found = block.by_document
    assert sorted(found.keys) == sorted(np.unique(block.documents))
    for place, key in enumerate(found.keys):
        own = rows[block.documents == key]
        lengths = np.linalg.norm(own, axis=1)
        units = own[lengths > 0] / lengths[lengths > 0, None]
        assert found.total[place] == pytest.approx(own.sum(axis=0))
        assert found.units[place] == pytest.approx(units.sum(axis=0))
        assert (found.rows[place], found.nonzero[place]) == (len(own), len(units))


def test_sums_of_cells_add_up_to_those_of_documents(make_block):
    rows = np.random.default_rng(4).normal(size=(120, 5))
    block = make_block(rows, [3] * 40)
    assert block.sums.units.sum(axis=0) == pytest.approx(block.by_document.units.sum(axis=0))
    assert block.sums.count.sum() == block.by_document.rows.sum() == 120
