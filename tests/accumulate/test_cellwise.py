"""Cells: documents while they are few, then groups; the same whatever came first."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.accumulate import merged
from isoscope.accumulate.cellwise import Cellwise
from isoscope.hashing import GROUPS, named_documents


@dataclass(frozen=True)
class Kept:
    keys: list
    rows: list
    documents: int
    folded: bool


class Counter(Cellwise[Kept]):
    """Rows of every cell."""

    shapes = {"rows": (), "total": ("width",)}  # noqa: RUF012

    def _add(self, block):
        cells = block.cells
        sizes = np.diff(cells.starts).astype(float)
        parts = {"rows": sizes, "total": block.sums.total}
        self._take_in(cells.keys, cells.folded, parts)
        self.documents += len(block.members.runs) - 1

    def finalize(self):
        rows = self.parts["rows"].tolist()
        return Kept(self.keys.tolist(), rows, self.documents, self.folded)


def by_definition(lengths):
    """Rows by document; by group as soon as there are more than 32 documents."""
    keys = named_documents(np.arange(len(lengths)))
    if len(lengths) > GROUPS:
        keys = keys % np.uint64(GROUPS)
    rows = {int(key): 0.0 for key in sorted(keys.tolist())}
    for key, length in zip(keys.tolist(), lengths, strict=True):
        rows[key] += length
    return rows


@st.composite
def streams(draw):
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=6))
    lengths = [1 + i % 3 for i in range(sum(sizes))]
    return lengths, sizes, draw(st.permutations(range(len(sizes))))


@given(stream=streams())
def test_order_and_cuts_do_not_tell(make_blocks, feed, stream):
    lengths, sizes, order = stream
    blocks = make_blocks(np.ones((sum(lengths), 2)), lengths, sizes)
    fed = feed(Counter(2), *(blocks[i] for i in order))
    joined = merged([feed(Counter(2), blocks[i]) for i in order])
    expected = by_definition(lengths)
    for kept in (fed.finalize(), joined.finalize()):
        assert dict(zip(kept.keys, kept.rows, strict=True)) == expected
        assert list(kept.keys) == sorted(kept.keys)
        assert kept.folded == (len(lengths) > GROUPS)
        assert kept.documents == len(lengths)


@pytest.mark.parametrize(("first", "second"), [(40, 3), (3, 40), (40, 40), (20, 20), (16, 16)])
def test_groups_and_documents_merge_either_way(make_blocks, feed, first, second):
    lengths = [2] * (first + second)
    blocks = make_blocks(np.ones((sum(lengths), 2)), lengths, [first, second])
    kept = merged([feed(Counter(2), block) for block in blocks]).finalize()
    assert dict(zip(kept.keys, kept.rows, strict=True)) == by_definition(lengths)


def test_a_document_that_comes_in_two_parts_is_one_cell(make_block, feed):
    rows = np.ones((3, 2))
    kept = feed(Counter(2), make_block(rows, [3]), make_block(rows, [3])).finalize()
    assert kept.rows == [6]


def test_folding_a_peer_leaves_it_alone(make_blocks, feed):
    blocks = make_blocks(np.ones((50, 2)), [1] * 50, [40, 10])
    many, few = (feed(Counter(2), block) for block in blocks)
    merged([many, few])
    assert not few.folded and len(few.keys) == 10
    many.merge(few)
    assert not few.folded and few.finalize().rows == [1.0] * 10


def test_state_and_back(make_block, feed):
    for documents in (5, 50):
        counter = feed(Counter(2), make_block(np.ones((documents, 2)), [1] * documents))
        back = Counter.from_state(counter.state(), width=2)
        assert back.finalize() == counter.finalize()
        np.testing.assert_array_equal(back.parts["total"], counter.parts["total"])
