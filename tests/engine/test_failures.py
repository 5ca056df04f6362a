"""Failure as a normal case: tried again, given up, named, resumed, or done without."""

import json

import pytest
from counting import CountSpec, SumSpec

from isoscope.engine import Notify
from isoscope.engine.failures import LISTED, Failures, UnitsMissingError, say
from isoscope.errors import ConfigError, RowError, UndefinedError, WriteError
from isoscope.study.run import run
from isoscope.study.spec import Execution

UNITS = 11
ROWS = [sum(range(2, UNITS + 2))] * 2  # of both stages


@pytest.fixture
def spec(orders):
    return SumSpec.of(orders=str(orders), units=UNITS, stages=2)


@pytest.fixture
def target(tmp_path):
    (tmp_path / "again").mkdir()
    return tmp_path / "again" / "run"


@pytest.fixture
def whole(spec, tmp_path, orders):
    (tmp_path / "whole").mkdir()
    run(spec, Execution(output=str(tmp_path / "whole" / "run")))
    (orders / "log").unlink()
    return (tmp_path / "whole" / "run" / "state.safetensors").read_bytes()


def into(target, **more):
    return Execution(output=str(target), **more)


def begun(log):
    return [where for _, _, where in log("begin")]


def test_a_unit_that_fails_once_is_done_after_the_others(spec, whole, target, order, log):
    order("once-bug@1-3")
    said = []
    assert run(spec, into(target), notify=Notify(say=said.append)) == ROWS
    assert (target / "state.safetensors").read_bytes() == whole
    first = begun(log)[: UNITS + 1]
    assert first.count("1-3") == 2 and first[-1] == "1-3"
    assert said == ["unit 3 failed and is tried again later: ZeroDivisionError: a bug"]


def test_several_units_that_always_fail_are_named_and_the_others_are_kept(
    spec, whole, target, order, log
):
    faults = [order("bug@1-3"), order("fail@1-5"), order("trouble@1-8")]
    with pytest.raises(UnitsMissingError) as caught:
        run(spec, into(target))
    error = caught.value
    assert error.slug == "units-missing" and error.code == 2
    assert error.problem == (
        "3 of 11 units are missing: unit 3: ZeroDivisionError: a bug; "
        "unit 5: there is no such number; unit 8: TroubledError: one and two"
    )
    assert "--allow-missing" in error.hint and str(target) in error.hint
    failed = json.loads((target / "failed.json").read_text())
    assert [(each["stage"], each["unit"], each["tries"]) for each in failed] == [
        (1, 3, 3),
        (1, 5, 1),  # what is wrong with an input stays wrong
        (1, 8, 3),
    ]
    assert "in obey" in failed[0]["traceback"]
    for each in faults:
        each.unlink()
    before = len(begun(log))
    run(spec, into(target))
    assert (target / "state.safetensors").read_bytes() == whole
    assert begun(log)[before:][:3] == ["1-3", "1-5", "1-8"]  # and then the second stage
    assert not (target / "failed.json").exists()


def test_the_list_of_what_is_missing_is_bounded(orders, target, order):
    for unit in range(1, 40):
        order(f"bug@1-{unit}")
    spec = CountSpec.of(orders=str(orders), units=40)
    with pytest.raises(UnitsMissingError, match=f"and {39 - LISTED} more") as caught:
        run(spec, into(target))
    assert len(caught.value.problem) < 400


def test_the_number_of_retries_is_an_option(spec, target, order, log):
    order("bug@1-3")
    for retries in (0, 4):
        before = begun(log).count("1-3")
        with pytest.raises(UnitsMissingError):
            run(spec, into(target, retries=retries))
        assert begun(log).count("1-3") - before == retries + 1


def test_with_allow_missing_both_stages_are_over_the_same_units(spec, target, order, log):
    order("bug@1-3")
    said = []
    found = run(spec, into(target, allow_missing=True), notify=Notify(say=said.append))
    assert found == [ROWS[0] - 5] * 2  # unit 3 has five rows
    assert "2-3" not in begun(log)
    assert said[-1] == "1 of 11 units is missing: unit 3"
    manifest = json.loads((target / "run.json").read_text())
    assert manifest["left_out"] == ["1 of 11 units is missing: unit 3"]


def test_with_allow_missing_there_has_to_be_something(spec, target, order):
    for unit in range(UNITS):
        order(f"fail@1-{unit}")
    with pytest.raises(UnitsMissingError):
        run(spec, into(target, allow_missing=True))
    assert not target.exists()


def test_a_resumed_run_with_allow_missing_that_is_whole_by_then_says_nothing(
    spec, whole, target, order, log
):
    failing = order("bug@2-3")
    order("bug@1-3")
    with pytest.raises(UnitsMissingError):
        run(spec, into(target))
    order("bug@1-3").unlink()
    failing.unlink()
    run(spec, into(target, allow_missing=True))
    assert (target / "state.safetensors").read_bytes() == whole
    assert json.loads((target / "run.json").read_text())["left_out"] == []


def test_records_are_done_without_what_is_missing(orders, order):
    order("bug@1-1")
    found = run(CountSpec.of(orders=str(orders)), Execution(allow_missing=True))
    assert [each["number"] for each in found] == [0, 2, 3]


def test_without_a_folder_nothing_would_be_kept_so_the_run_ends_at_once(spec, order, log):
    order("bug@1-3")
    with pytest.raises(ZeroDivisionError):
        run(spec)
    assert begun(log)[-1] == "1-3" and begun(log).count("1-3") == 3


def test_a_bad_row_ends_the_run_at_once_unless_units_may_be_missing(spec, target, order, log):
    order("bad_row@1-3")
    with pytest.raises(RowError, match="row 3"):
        run(spec, into(target))
    assert begun(log)[-1] == "1-3" and begun(log).count("1-3") == 1
    assert not target.exists()
    run(spec, into(target, allow_missing=True))
    assert begun(log).count("1-3") == 2  # it would be the same every time


def test_an_object_is_not_tried_again(orders, order, log):
    order("bug@1-3")
    with pytest.raises(ZeroDivisionError):
        run(CountSpec.of(orders=str(orders)), live={"given": iter([1])})
    assert begun(log).count("1-3") == 1


def test_a_disk_that_is_full_ends_the_run(spec, whole, target, monkeypatch, log):
    from isoscope.store import keepers

    real, left = keepers.write_state, [3]

    def write(path, survey):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(path, survey)

    monkeypatch.setattr(keepers, "write_state", write)
    monkeypatch.setitem(keepers.SummaryKeeper.__init__.__kwdefaults__, "patience", 0.0)
    with pytest.raises(WriteError, match="No space left"):
        run(spec, into(target))
    assert len(begun(log)) < UNITS
    monkeypatch.undo()
    run(spec, into(target))
    assert (target / "state.safetensors").read_bytes() == whole


def test_what_would_be_the_same_for_every_unit_is_raised_as_it_is():
    failures = Failures([4], kept_in="run")
    wrong = ConfigError("no such layer", hint="look", slug="layer")
    with pytest.raises(ConfigError):
        failures.fail(0, 1, "", wrong, any_done=True)
    with pytest.raises(KeyboardInterrupt):
        failures.fail(0, 1, "", KeyboardInterrupt(), any_done=True)


def test_a_plan_of_one_unit_ends_with_its_own_error(orders, target, order):
    order("fail@1-0")
    with pytest.raises(UndefinedError) as caught:
        run(CountSpec.of(orders=str(orders), units=1), into(target))
    assert caught.value.hint == "take another"


def test_an_error_is_said_in_a_line():
    assert say(ValueError("one\n  two")) == "ValueError: one two"
    assert say(MemoryError()) == "MemoryError"
    assert len(say(ValueError("x" * 1000))) < 250
