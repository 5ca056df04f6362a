"""Engines by name, and progress over all units of a run."""

import pytest

from isoscope.engine import Notify, Status, Tracker
from isoscope.engine.choose import Where, engine_for
from isoscope.engine.tracker import NAMED, Doing
from isoscope.errors import ConfigError, UnknownNameError


def test_engines_are_found_by_name():
    assert [type(engine_for(Where(name))).__name__ for name in ("here", "pool")] == [
        "Here",
        "Pool",
    ]


def test_an_unknown_engine_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="pol") as caught:
        engine_for(Where("pol"))
    assert "pool" in caught.value.hint


@pytest.mark.parametrize("workers", [0, -1, True, 1.5, "2"])
def test_workers_are_a_whole_number_from_one(workers):
    with pytest.raises(ConfigError, match="at least 1") as caught:
        engine_for(Where("pool", workers))
    assert caught.value.slug == "number-too-small"


def test_one_process_has_one_worker():
    with pytest.raises(ConfigError) as caught:
        engine_for(Where("here", 2))
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


def test_many_workers_are_counted():
    doing = tuple(Doing(f"worker {n}", f"unit {n}") for n in range(64))
    text = Status(1, None, 0, 100, workers=doing).details
    assert text.count("unit ") == NAMED and text.endswith("56 more")


def test_status_says_who_does_what_and_what_failed():
    seen = []
    tracker = Tracker(Notify(status=seen.append), total=30, units=3)
    tracker.find(0, 0, 10)
    tracker.at(0, 1, 4, "worker 1", 10)
    tracker.at(0, 2, 3, "worker 2", 10)
    assert seen[-1] == Status(
        17,
        30,
        1,
        3,
        workers=(Doing("worker 1", "unit 1", 4, 10), Doing("worker 2", "unit 2", 3, 10)),
        earlier=10,
    )
    tracker.fail(0, 1, again=True)
    tracker.finish(0, 2, 10)
    assert seen[-1] == Status(20, 30, 2, 3, failed=1, earlier=10)
    tracker.fail(0, 1, again=False)
    assert (seen[-1].failed, seen[-1].given_up) == (2, 1)


@pytest.mark.parametrize("option", ["address", "gpus_per_worker", "memory_per_worker"])
def test_an_option_of_another_engine_is_refused(option):
    value = "auto" if option == "address" else 1.0
    with pytest.raises(ConfigError, match="with the engine pool") as caught:
        engine_for(Where("pool", 2, **{option: value}))
    assert caught.value.slug == "engine-option" and "--engine=ray" in caught.value.hint
