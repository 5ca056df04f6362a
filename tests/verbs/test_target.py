"""Where runs are written, and numbers that are too small."""

import pytest

from isoscope.errors import ConfigError, StoreError
from isoscope.verbs.target import aside, positive, target_of, within, working


def test_nothing_is_written_where_nothing_was_asked_for():
    assert target_of(None, False) is None and working(None) is None


def test_a_new_folder_and_one_begun_hold_their_units_themselves(tmp_path):
    target = target_of(tmp_path / "run", False)
    assert working(target) == target
    (target / "units").mkdir(parents=True)
    assert working(target_of(target, False)) == target


def test_a_run_that_is_whole_is_refused_or_replaced_from_aside(tmp_path):
    target = tmp_path / "run"
    target.mkdir()
    (target / "run.json").write_text("{}")
    with pytest.raises(StoreError):
        target_of(target, False)
    assert working(target_of(target, True)) == aside(target)
    assert aside(target).parent == target.parent


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "3"])
def test_what_is_no_whole_number_above_zero_is_refused(value):
    with pytest.raises(ConfigError, match="at least 1 as steps") as caught:
        positive("steps", value)
    assert caught.value.slug == "number-too-small"


def test_numbers_within_bounds_pass_and_none_is_no_number():
    positive("steps", None)
    positive("steps", 1)
    within("zeta", 0.5, 0.0, 1.0)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_numbers_out_of_bounds_are_refused(value):
    with pytest.raises(ConfigError, match="at most 1 as zeta"):
        within("zeta", value, 0.0, 1.0)
