"""A plan is a file: it comes back as it was, or is reported as damaged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.engine.plan import Packed, Plan, Unit
from isoscope.errors import StoreError


class Share(Unit, frozen=True, tag=True):
    """A range."""

    first: int
    last: int


class Extra(Unit, frozen=True, tag=True):
    """Something else."""

    words: tuple[str, ...]


class Shares(Plan, frozen=True, kw_only=True):
    """Ranges, with a size each."""

    stages: tuple[tuple[Share | Extra, ...], ...]
    lengths: Packed

    def size(self, stage, unit):
        share = self.stages[stage][unit]
        return share.last - share.first if isinstance(share, Share) else None


def plan(*units, **more):
    return Shares(stages=(units,), lengths=Packed.of(np.arange(3)), **more)


def test_a_plan_comes_back_as_it_was():
    made = Shares(
        stages=((Share(0, 2), Extra(("a", "b"))), (Share(0, 2),)),
        lengths=Packed.of(np.array([3, 1], dtype=np.int64)),
        threads=3,
    )
    again = Shares.decode(made.encode())
    assert again == made
    assert again.encode() == made.encode()
    assert hash(again.stages[0][0]) == hash(Share(0, 2))
    assert again.lengths.array.tolist() == [3, 1]


@given(
    shape=st.lists(st.integers(0, 4), min_size=1, max_size=3),
    kind=st.sampled_from(["<i8", "<f8", "<u8", "<i4", "|u1"]),
)
def test_arrays_come_back_with_shape_and_kind(shape, kind):
    array = np.arange(np.prod(shape), dtype=kind).reshape(shape)
    turned = array.T  # not in order in memory
    packed = Shares.decode(plan(Share(0, 1)).encode()).lengths
    assert packed.array.tolist() == [0, 1, 2]
    again = Packed.of(turned).array
    assert again.dtype == array.dtype and again.shape == turned.shape
    assert np.array_equal(again, turned)
    assert not again.flags.writeable


def test_an_array_that_is_not_of_numbers_is_reported():
    with pytest.raises(StoreError, match="expected numbers in a plan") as caught:
        _ = Packed("|O", (1,), b"12345678").array
    assert caught.value.slug == "store-damaged"


@pytest.mark.parametrize(
    "content", [b"", b"\xc1", plan(Share(0, 1)).encode()[:-1], Plan(stages=()).encode()]
)
def test_a_damaged_plan_or_one_of_another_kind_is_reported(content):
    with pytest.raises(StoreError, match="cannot read the plan") as caught:
        Shares.decode(content)
    assert caught.value.slug == "store-damaged" and "--overwrite" in caught.value.hint


def test_the_total_is_that_of_all_stages_where_every_size_is_known():
    assert plan(Share(0, 2), Share(2, 7)).total() == 7
    assert plan(Share(0, 2), Extra(())).total() is None
    assert Plan(stages=((Share(0, 9),), (Share(0, 9),))).total() == 2  # one each
