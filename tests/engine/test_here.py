"""Units are done once, in any number of attempts, with the same result to the last bit."""

import signal

import pytest
from counting import CountSpec, SumSpec
from watching import eventually

from isoscope.engine import Notify
from isoscope.engine.failures import UnitsMissingError
from isoscope.errors import UndefinedError
from isoscope.study.run import run
from isoscope.study.spec import Execution


@pytest.fixture
def spec(orders):
    return SumSpec.of(orders=str(orders), units=11)


def into(folder, **where):
    folder.parent.mkdir(exist_ok=True)
    return Execution(output=str(folder), **where)


def bits(run):
    return (run / "state.safetensors").read_bytes()


@pytest.fixture
def whole(spec, tmp_path, orders):
    """Return the bytes of a run that was not interrupted."""
    assert run(spec, into(tmp_path / "whole" / "run")) == [sum(range(2, 13))]
    (orders / "log").unlink()
    return bits(tmp_path / "whole" / "run")


@pytest.mark.parametrize("stop", [0, 1, 4, 7, 10])
def test_a_run_that_failed_is_resumed_with_the_same_bits(
    spec, whole, tmp_path, order, log, stop
):
    failing = order(f"fail@1-{stop}")
    target = tmp_path / "again" / "run"
    with pytest.raises(UndefinedError):
        run(spec, into(target))
    assert [where for _, _, where in log("begin")].count(
        f"1-{stop}"
    ) == 1  # it would be the same
    failing.unlink()
    run(spec, into(target))
    assert bits(target) == whole
    done = [where for _, _, where in log("end")]
    assert done == [f"1-{n}" for n in range(11) if n != stop] + [f"1-{stop}"]


def test_a_kill_loses_nothing_that_was_kept(spec, whole, tmp_path, order, log, start):
    target = tmp_path / "again" / "run"
    options = {"orders": spec.orders, "units": 11}
    failing = [order(f"fail@1-{unit}") for unit in range(4, 11)]
    with pytest.raises(UnitsMissingError):
        run(spec, into(target))  # units 0 to 3 are kept
    for each in failing:
        each.unlink()
    order("wait@1-7")
    driver = start("SumSpec", options, output=str(target))
    eventually(lambda: ("begin", "1-7") in [line[1:] for line in log()])
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    order("wait@1-7").unlink()
    begun = len(log("begin"))
    run(spec, into(target))
    assert bits(target) == whole
    # Units 4 to 6 waited in memory for the minute to be over.
    assert [where for _, _, where in log("begin")][begun:] == [
        f"1-{number}" for number in range(4, 11)
    ]


def test_records_are_kept_one_by_one(orders, tmp_path, order, log):
    spec = CountSpec.of(orders=str(orders), units=3)
    target = tmp_path / "run"
    failing = order("fail@1-2")
    with pytest.raises(UndefinedError):
        run(spec, into(target))
    failing.unlink()
    found = run(spec, into(target))
    assert [each["number"] for each in found] == [0, 1, 2]
    assert found == run(spec)  # in memory, with the values that files would give
    assert [where for _, _, where in log("end")][:3] == ["1-0", "1-1", "1-2"]


def test_progress_counts_units_and_never_goes_back(spec):
    seen = []
    run(spec, notify=Notify(progress=lambda *told: seen.append(told)))
    assert seen == [(number, 11) for number in range(12)]


def test_no_units_are_an_empty_result(orders):
    assert run(SumSpec.of(orders=str(orders), units=0)) == [0]


def test_the_second_stage_begins_when_the_first_is_merged(orders, log):
    spec = SumSpec.of(orders=str(orders), units=3, stages=2)
    assert run(spec) == [9, 9]
    places = [where for _, _, where in log("begin")]
    assert places == ["1-0", "1-1", "1-2", "2-0", "2-1", "2-2"]


def test_scratch_is_gone_when_the_unit_is_kept_and_not_before(
    orders, tmp_path, order, log, start
):
    target = tmp_path / "run"
    order("learn@1-1")
    options = {"orders": str(orders), "units": 3}
    driver = start("SumSpec", options, output=str(target))
    eventually(lambda: log("left"))
    driver.send_signal(signal.SIGKILL)
    driver.communicate()
    assert (target / "scratch" / "1-1" / "checkpoint").read_text() == "half"
    order("wait@1-2")
    driver = start("SumSpec", options, output=str(target))
    eventually(lambda: ("begin", "1-2") in [line[1:] for line in log()])
    assert log("found")
    assert not (target / "scratch" / "1-1").exists()
    driver.send_signal(signal.SIGKILL)  # what came out of the scratch was written at once
    driver.communicate()
    order("wait@1-2").unlink()
    run(SumSpec.of(**options), into(target))
    assert [where for _, _, where in log("end")].count("1-1") == 1
