"""Ray: real clusters, tasks and actors, and the bytes of one process whoever dies."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from counting import CountSpec, HeldSpec, SumSpec
from driving import HERE, SOURCES
from test_torchrun import free_port
from watching import descendants, eventually, lives

from isoscope.engine import Notify, wire
from isoscope.engine.failures import UnitsMissingError
from isoscope.engine.ray import Ray, Reports, _Reporter
from isoscope.errors import EngineError, MissingPackageError, RowError
from isoscope.study.run import run
from isoscope.study.spec import Execution

pytestmark = pytest.mark.spoils_process  # forks of a process that had a cluster may die
UNITS = 11
ALL = sorted(f"{s}-{n}" for s in (1, 2) for n in range(UNITS))


@pytest.fixture(scope="module")
def cluster():
    """Start a local cluster, as the engine does, which the tests of this file share."""
    from isoscope.engine.ray import _cluster

    with _cluster(Ray(3), 1):
        yield


SLOW = pytest.mark.slow
TASKS_FIRST = pytest.mark.parametrize("kind", [SumSpec, pytest.param(HeldSpec, marks=SLOW)])
ACTORS_FIRST = pytest.mark.parametrize("kind", [pytest.param(SumSpec, marks=SLOW), HeldSpec])


@pytest.fixture
def spec(kind, orders):
    return kind.of(orders=str(orders), units=UNITS, stages=2)


@pytest.fixture
def whole(spec, tmp_path, orders):
    (tmp_path / "whole").mkdir()
    run(spec, Execution(output=str(tmp_path / "whole" / "run")))
    (orders / "log").unlink()
    return (tmp_path / "whole" / "run" / "state.safetensors").read_bytes()


@pytest.fixture
def target(tmp_path):
    (tmp_path / "ray").mkdir()
    return tmp_path / "ray" / "run"


def rayed(target=None, workers=2, **more):
    output = None if target is None else str(target)
    return Execution(output=output, engine="ray", workers=workers, **more)


def bits(target):
    return (target / "state.safetensors").read_bytes()


def ended(log):
    return sorted(where for _, _, where in log("end"))


@TASKS_FIRST
def test_it_gives_the_bytes_of_one_process(cluster, spec, whole, target, log):
    seen = []
    assert run(spec, rayed(target), notify=Notify(status=seen.append)) == [77, 77]
    assert bits(target) == whole
    assert ended(log) == ALL
    assert os.getpid() not in {pid for pid, *_ in log("end")}
    assert sorted(path.name for path in target.parent.iterdir()) == ["run"]
    assert seen[-1].units_done == 2 * UNITS


@ACTORS_FIRST
def test_a_worker_killed_in_a_unit_is_replaced_by_ray(cluster, spec, whole, target, order):
    order("once-die@1-4")
    run(spec, rayed(target))
    assert bits(target) == whole


def test_actors_for_which_there_is_no_room_keep_no_task(cluster, orders, target):
    spec = HeldSpec.of(orders=str(orders), units=UNITS, stages=2)
    assert run(spec, rayed(target, workers=5)) == [77, 77]  # of a cluster that has three cores


@TASKS_FIRST
def test_units_that_always_fail_are_given_up_and_the_others_kept(
    cluster, spec, whole, target, order, log
):
    faults = [order("bug@1-3"), order("die@1-6"), order("fail@1-8")]
    with pytest.raises(UnitsMissingError, match="3 of 11 units are missing") as caught:
        run(spec, rayed(target, retries=1))
    for text in ("ZeroDivisionError: a bug", "a worker died at unit 6", "no such number"):
        assert text in caught.value.problem
    for each in faults:
        each.unlink()
    before = len(ended(log))
    run(spec, rayed(target, 1))
    assert bits(target) == whole
    done = [where for _, _, where in log("end")][before:]
    assert sorted(done)[:3] == ["1-3", "1-6", "1-8"] and len(done) == 3 + UNITS


def test_records_are_files_too(cluster, orders, log):
    spec = CountSpec.of(orders=str(orders), units=5)
    assert run(spec, rayed()) == run(spec)


def test_an_error_of_the_input_ends_the_run(cluster, orders, target, order):
    order("bad_row@1-3")
    for _ in range(3):  # where tasks were cancelled, Ray ended the driver one time in four
        with pytest.raises(RowError):
            run(SumSpec.of(orders=str(orders), units=UNITS), rayed(target))
        assert not target.exists()


def test_workers_end_their_tasks_once_nobody_takes_reports(cluster):
    import ray

    reports = ray.remote(Reports).options(num_cpus=0).remote()
    reporter = _Reporter(reports, [])
    reporter.emit(wire.At(0, 0))
    assert not reporter.is_stopped()
    ray.get(reports.stop.remote())
    reporter.emit(wire.At(1, 0))
    assert reporter.is_stopped()
    ray.kill(reports)
    reporter.emit(wire.At(2, 0))
    assert reporter.is_stopped()


def test_notes_and_what_workers_print(cluster, orders, target, order, capfd):
    order("note@1-3", "memory ran out: batches are now cut in 2")
    order("noise@1-2")
    run(SumSpec.of(orders=str(orders), units=UNITS), rayed(target))
    manifest = json.loads((target / "run.json").read_text())
    assert manifest["left_out"] == ["memory ran out: batches are now cut in 2"]
    assert capfd.readouterr().out == ""


def test_an_object_is_refused(orders):
    with pytest.raises(EngineError, match="cannot hand given to the engine ray") as caught:
        run(CountSpec.of(orders=str(orders)), rayed(), live={"given": [1]})
    assert caught.value.slug == "engine-live"


def test_a_spec_of_the_script_itself_is_refused(orders, monkeypatch):
    monkeypatch.setattr(CountSpec, "__module__", "__main__")
    with pytest.raises(EngineError, match="to the engine ray: it is defined in the script"):
        run(CountSpec.of(orders=str(orders)), rayed())


def test_without_ray_the_extra_is_named(orders, monkeypatch):
    monkeypatch.setattr("isoscope.errors.find_spec", lambda _: None)
    with pytest.raises(MissingPackageError, match="the engine ray needs ray") as caught:
        run(CountSpec.of(orders=str(orders)), rayed())
    assert "isoscope[ray]" in caught.value.hint


def silent_port():
    """Return a socket that takes connections and never answers."""
    found = socket.socket()
    found.bind(("127.0.0.1", 0))
    found.listen()
    return found


@pytest.fixture
def alone(monkeypatch):
    """Be connected to no cluster, whatever other tests have started."""
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("ray.shutdown", lambda: None)


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("ray://127.0.0.1:1", "Connection refused"),
        ("127.0.0.1:1", "Connection refused"),
        ("ray://no-such-host.invalid:10001", "cannot reach"),
        ("http://127.0.0.1:1", "expected auto, HOST:PORT"),
        ("127.0.0.1", "expected auto, HOST:PORT"),
        ("ray://127.0.0.1:99999999", "expected auto, HOST:PORT"),
    ],
)
def test_an_address_that_does_not_answer_is_refused_in_seconds(orders, alone, address, problem):
    began = time.monotonic()
    with pytest.raises(EngineError, match=problem) as caught:
        run(CountSpec.of(orders=str(orders)), rayed(address=address))
    assert caught.value.slug == "engine-address"
    assert time.monotonic() - began < 20


def test_what_answers_but_is_not_ray_is_given_up(orders, alone, monkeypatch):
    monkeypatch.setattr("isoscope.engine.ray.CONNECT", 0.5)
    monkeypatch.setattr("ray.init", lambda *_, **__: time.sleep(5))
    with silent_port() as port, pytest.raises(EngineError, match="no answer within"):
        address = f"ray://127.0.0.1:{port.getsockname()[1]}"
        run(CountSpec.of(orders=str(orders)), rayed(address=address))


def test_what_ray_says_is_passed_on_in_a_line(orders, alone, monkeypatch):
    def refuse(*_, **__):
        raise ConnectionError("Could not find any running Ray instance.\nPlease do.")

    monkeypatch.setattr("ray.init", refuse)
    with pytest.raises(EngineError, match=r"any running Ray instance\.\n") as caught:
        run(CountSpec.of(orders=str(orders)), rayed(address="auto"))
    assert "without --address" in caught.value.hint


@pytest.mark.slow
@pytest.mark.parametrize("kind", [SumSpec, HeldSpec])
def test_a_local_cluster_ends_with_the_run(orders, target, start, log, spec, whole):
    where = {"output": str(target), "engine": "ray", "workers": 2}
    options = {"orders": str(orders), "units": UNITS, "stages": 2}
    driver = start(type(spec).__name__, options, **where)
    started = set()
    while driver.poll() is None:
        started |= set(descendants(driver.pid))
        time.sleep(0.2)
    out, err = driver.communicate()
    assert driver.returncode == 0, err
    assert json.loads(out) == [77, 77]
    assert bits(target) == whole
    assert len(started) > 3
    eventually(lambda: not any(map(lives, started)), seconds=30)


@pytest.mark.slow
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("kind", [SumSpec, HeldSpec])
def test_a_driver_that_is_killed_is_resumed_with_another_engine(
    orders, target, start, order, log, spec, whole, blow
):
    waiting = order("wait@1-4")
    options = {"orders": str(orders), "units": UNITS, "stages": 2}
    where = {"output": str(target), "engine": "ray", "workers": 2}
    driver = start(type(spec).__name__, options, **where)
    eventually(lambda: len(log("end")) == UNITS - 1)
    workers = {pid for pid, *_ in log("end")}
    driver.send_signal(blow)
    driver.communicate()
    eventually(lambda: not any(map(lives, workers)), seconds=60)  # in the middle of a unit
    waiting.unlink()
    before = len(log("end"))
    run(spec, Execution(output=str(target), engine="pool", workers=3))
    assert bits(target) == whole
    again = [where for _, _, where in log("end")][before:]
    if blow == signal.SIGINT:  # what was done was handed over
        assert [where for where in again if where.startswith("1-")] == ["1-4"]


@pytest.fixture
def head(tmp_path, monkeypatch):
    """Start a cluster as `ray start` does; return its port, and the one for clients."""
    ports = free_port(), free_port()
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    words = {
        "port": ports[0],
        "ray-client-server-port": ports[1],
        "num-cpus": 2,
        "num-gpus": 0,
        "node-ip-address": "127.0.0.1",
        "object-store-memory": 100_000_000,
        "include-dashboard": "false",
        "temp-dir": f"/tmp/isoscope-{ports[0]}",
    }
    flags = [f"--{name}={value}" for name, value in words.items()]
    with (tmp_path / "head.log").open("w") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", *flags],
            stdout=log,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES), str(HERE)])},
        )
    try:
        eventually(lambda: answers(ports[0]) and answers(ports[1]), seconds=120)
        yield ports
    finally:
        below = descendants(started.pid)
        started.terminate()
        started.wait(30)
        eventually(lambda: not any(map(lives, below)), seconds=60)
        shutil.rmtree(words["temp-dir"], ignore_errors=True)


def answers(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@pytest.mark.slow
def test_a_cluster_that_runs_takes_drivers_of_every_kind_of_address(
    head, orders, tmp_path, start, order, monkeypatch
):
    options = {"orders": str(orders), "units": UNITS, "stages": 2}
    (tmp_path / "whole").mkdir()
    run(SumSpec.of(**options), Execution(output=str(tmp_path / "whole" / "run")))
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{head[0]}")  # or auto might find another
    client = f"ray://127.0.0.1:{head[1]}"
    for number, (kind, address) in enumerate(
        [
            ("SumSpec", client),
            ("HeldSpec", client),
            ("SumSpec", "auto"),
            ("HeldSpec", f"127.0.0.1:{head[0]}"),
        ]
    ):
        for fault in ("once-die@1-4", "once-bug@1-6"):
            order(fault)
        target = tmp_path / f"to-{number}" / "run"
        target.parent.mkdir()
        where = {"output": str(target), "engine": "ray", "workers": 2, "address": address}
        driver = start(kind, options, **where)
        out, err = driver.communicate()
        assert driver.returncode == 0, (address, err)
        assert json.loads(out) == [77, 77], address
        assert bits(target) == bits(tmp_path / "whole" / "run"), (kind, address)
    order("fail@1-3")
    where["output"] += "-again"
    driver = start("SumSpec", options, **{**where, "address": client})
    assert "there is no such number" in driver.communicate()[1]
