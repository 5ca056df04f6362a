"""The onset of planted changes, false alarms among steps that go together, and the edges."""

from itertools import product
from math import sqrt

import numpy as np
import pytest

from isoscope.lab.trajectory.onset import Difference, find_onset, step_down

GROUPS = 32


def measured(alone):
    """Return differences and parts of what groups (steps, groups) say on their own."""
    groups = alone.shape[1]
    values = alone.mean(axis=1)
    parts = (alone - values[:, None]) / sqrt(groups * (groups - 1))
    errors = np.sqrt(np.square(parts).sum(axis=1))
    return [Difference(v, e, groups - 1) for v, e in zip(values, errors, strict=True)], parts


def paired(random, steps, groups=GROUPS, memory=0.9):
    """Return what groups say of the difference to step 0, which all steps share."""
    shocks = random.normal(size=(steps + 1, groups))
    for i in range(1, steps + 1):
        shocks[i] = memory * shocks[i - 1] + sqrt(1 - memory**2) * shocks[i]
    return shocks[1:] - shocks[0]


def brute_force(alone):
    """The definition: all sign patterns, one step after the other from the most striking."""

    def t(rows):
        return abs(rows.sum(axis=1)) / np.sqrt(np.square(rows).sum(axis=1))

    observed = t(alone)
    order = np.argsort(-observed)
    p, so_far = np.empty(len(order)), 0.0
    for rank, step in enumerate(order):
        rest = alone[order[rank:]]
        hits = [
            t(rest * np.array(signs)).max() >= observed[step] - 1e-12
            for signs in product([-1, 1], repeat=alone.shape[1])
        ]
        so_far = max(so_far, float(np.mean(hits)))
        p[step] = so_far
    return p


def test_it_is_the_step_down_over_all_sign_patterns():
    alone = paired(np.random.default_rng(0), 4, groups=8)
    alone[2:] += 1.0
    assert step_down(alone) == pytest.approx(list(brute_force(alone)))


@pytest.mark.parametrize("with_parts", [True, False])
def test_a_planted_change_is_found_where_it_begins(with_parts):
    steps = list(range(0, 2100, 100))
    alone = paired(np.random.default_rng(1), 20)
    alone[11:] += 3.0
    differences, parts = measured(alone)
    found = find_onset(steps, differences, parts if with_parts else None)
    assert found.step == steps[12]
    assert found.method == ("groups" if with_parts else "holm")
    assert all(p > 0.05 for p in found.p[:11]) and all(p <= 0.05 for p in found.p[11:])


@pytest.mark.parametrize("memory", [0.5, 0.9, 1 - 1e-4])
def test_no_change_is_called_one_as_often_as_it_may(memory):
    random = np.random.default_rng(2)
    by_groups = by_holm = 0
    for _ in range(400):
        differences, parts = measured(paired(random, 20, groups=16, memory=memory))
        by_groups += find_onset(range(21), differences, parts).step is not None
        by_holm += find_onset(range(21), differences).step is not None
    # 99.9 % of 400 draws at 5 %; Holm knows nothing of steps that go together
    assert 8 <= by_groups <= 35
    assert by_holm <= by_groups


def test_steps_without_an_interval_are_not_tested():
    alone = paired(np.random.default_rng(3), 5) + 3.0
    differences, parts = measured(alone)
    differences[0] = Difference(9.0, None)
    for given in (parts, None):
        found = find_onset(range(6), differences, given)
        assert found.step == 2 and found.p[0] is None
    none = find_onset(range(3), [Difference(1.0, None)] * 2)
    assert none.step is None and none.p == (None, None) and none.note


def test_checkpoints_that_are_the_same_do_not_differ():
    same = [Difference(0.0, 0.0, 31.0)] * 3
    assert find_onset(range(4), same).step is None
    found = find_onset(range(4), same, np.zeros((3, GROUPS)))
    assert found.step is None and found.p == (1.0, 1.0, 1.0)


def test_a_difference_per_later_step_is_needed():
    with pytest.raises(ValueError, match="got 2 for 1"):
        find_onset([0, 1], [Difference(1.0, 1.0)] * 2)
