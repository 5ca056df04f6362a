"""States are checked by their layout before they are trusted."""

import numpy as np
import pytest

from isoscope.accumulate import ACCUMULATORS, ArrayBlock, Moments, Neighbourhoods, Overlap
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


HARM = [
    ("Tally", lambda s: s.pop("documents"), "have no 'documents'"),
    ("Moments", lambda s: s.update(mean=s["mean"].astype(int)), "has the type int64"),
    ("Reservoir", lambda s: s.update(size=np.array(3)), "more rows than it has room for"),
    ("Tally", lambda s: s.update(independent=np.array(2, np.uint8)), "neither true nor false"),
    ("Copies", lambda s: s.update(hashes=s["hashes"][::-1]), "'hashes' is not in order"),
    ("Copies", lambda s: s.update(times=0 * s["times"]), "'times' is negative"),
    ("Copies", lambda s: s.update(times=s["times"] << 60), "counts more rows than there are"),
    ("Norms", lambda s: s.update(bins=s["bins"] + (1 << 21)), "norms that no row can have"),
    ("Norms", lambda s: s.update(counts=-s["counts"]), "'counts' is negative"),
    ("Groups", lambda s: s.update(rows=2 * s["rows"]), "adds up to 80 rows instead of 40"),
    ("Moments", lambda s: s.update(mean=s["mean"] + 1e90), "'mean' is too large"),
    ("Sinks", lambda s: s.update(words=s["words"].astype(np.uint64)), "has the type uint64"),
]


@pytest.mark.parametrize(("kind", "harm", "problem"), HARM)
def test_what_cannot_be_sums_of_rows_is_said(kind, harm, problem):
    (accumulator,) = (each for each in ACCUMULATORS if each.__name__ == kind)
    state = full(accumulator).state()
    check_state(kind, state, 3)
    harm(state)
    with pytest.raises(ValueError, match=problem):
        check_state(kind, state, 3)


@pytest.mark.parametrize(
    ("owners", "problem"),
    [([0, 3], "rows of none of their types"), ([1, 0], "'owners' is not in order")],
)
def test_neighbourhoods_have_rows_of_their_types_in_order(owners, problem):
    state = Neighbourhoods(3, np.arange(2), 4).state() | {
        "owners": np.array(owners),
        "rows": np.zeros((2, 3), dtype=np.float32),
        "documents": np.zeros(2, dtype=np.uint64),
        "draws": np.zeros(2, dtype=np.uint64),
    }
    with pytest.raises(ValueError, match=problem):
        check_state("Neighbourhoods", state, 3)


def test_a_place_has_a_width_that_rows_can_have():
    with pytest.raises(ValueError, match="expected a width of 1 to"):
        check_place({"Moments": 0}, {"Moments": full(Moments).state()})
    with pytest.raises(ValueError, match="its QueryScores have a width of 4, not"):
        check_place({"QueryScores": 4}, {})
