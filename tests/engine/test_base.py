"""Engines by name, and progress over all units of a run."""

import pytest

from isoscope.engine import ENGINES, Notify, Tracker, engine_for
from isoscope.errors import ConfigError, UnknownNameError


def test_every_engine_is_found_by_name():
    assert [type(engine_for(name, 1)).__name__ for name in ENGINES] == ["Here", "Pool"]


def test_an_unknown_engine_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="pol") as caught:
        engine_for("pol", 1)
    assert "pool" in caught.value.hint


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_workers_are_a_whole_number_from_one(workers):
    with pytest.raises(ConfigError, match="at least 1") as caught:
        engine_for("pool", workers)
    assert caught.value.slug == "number-too-small"


def test_one_process_has_one_worker():
    with pytest.raises(ConfigError) as caught:
        engine_for("here", 2)
    assert caught.value.slug == "engine-workers" and "--engine=pool" in caught.value.hint


def test_progress_adds_up_units_under_way_and_never_goes_back():
    seen = []
    tracker = Tracker(Notify(progress=lambda *told: seen.append(told)), total=30)
    tracker.finish(0, 0, 10)  # by an earlier run
    tracker.at(0, 1, 4)
    tracker.at(0, 2, 3)
    tracker.at(0, 1, 1)  # a retry begins again
    tracker.at(0, 1, 9)
    tracker.finish(0, 1, 10)
    tracker.finish(0, 2, 10)
    assert [done for done, _ in seen] == [10, 14, 17, 22, 23, 30]
    assert {total for _, total in seen} == {30}


def test_a_unit_of_unknown_size_counts_what_it_reported():
    seen = []
    tracker = Tracker(Notify(progress=lambda *told: seen.append(told)))
    tracker.at(0, 0, 7)
    tracker.finish(0, 0, None)
    tracker.at(0, 1, 1)
    assert seen == [(7, None), (8, None)]
