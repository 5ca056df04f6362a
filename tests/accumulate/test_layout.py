"""States are checked by their layout before they are trusted."""

import numpy as np
import pytest

from isoscope.accumulate import ACCUMULATORS, ArrayBlock, Moments, Overlap
from isoscope.accumulate.layout import LAYOUTS, check_place, check_state
from isoscope.hashing import named_documents


def full(kind, width=3):
    """Return an accumulator that has seen rows, tokens and documents."""
    rng = np.random.default_rng(0)
    block = ArrayBlock(
        rng.normal(size=(40, width)),
        named_documents(np.repeat(np.arange(5), 8)),
        np.tile(np.arange(8, dtype=np.uint64), 5),
        tokens=rng.integers(0, 9, 40),
        frequency=rng.integers(0, 3, 40),
        ordinals=np.arange(40),
    )
    found = kind(width)
    found.update(block)
    return found


@pytest.mark.parametrize("kind", ACCUMULATORS)
def test_every_state_has_its_layout_and_passes(kind):
    state = full(kind).state()
    assert state.keys() == {"count", *LAYOUTS[kind.__name__]}
    check_state(kind.__name__, state, 3)
    check_state(kind.__name__, kind(3).state(), 3)


@pytest.mark.parametrize("kind", [each for each in ACCUMULATORS if each is not Overlap])
def test_no_array_may_be_nan_or_of_another_shape(kind):
    state = full(kind).state()
    for name, array in state.items():
        if array.dtype.kind == "f" and array.size and array.ndim:
            spoilt = array.copy()
            spoilt.reshape(-1)[0] = np.inf
            with pytest.raises(ValueError, match=f"'{name}' has NaN or infinity"):
                check_state(kind.__name__, {**state, name: spoilt}, 3)
        with pytest.raises(ValueError, match=r"axes|shape"):
            check_state(kind.__name__, {**state, name: array[None]}, 3)


def test_accumulators_of_a_place_have_one_width_and_one_count():
    states = {"Moments": full(Moments).state(), "Tally": full(ACCUMULATORS[0]).state()}
    check_place({"Moments": 3, "Tally": 3, "Unknown": -1}, states)
    with pytest.raises(ValueError, match="expected one width at a site"):
        check_place({"Moments": 3, "Tally": 4}, states)
    states["Tally"]["count"] = np.array(41)
    with pytest.raises(
        ValueError, match=r"expected one number of rows at a site, got \[40, 41\]"
    ):
        check_place({"Moments": 3, "Tally": 3}, states)
