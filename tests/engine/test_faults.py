"""Faults over pool and Ray: what is done is kept, and the run ends with the same bytes."""

import json
import os
import resource
import signal
import subprocess
import sys

import pytest
from counting import CountSpec, SumSpec
from driving import DRIVE, HERE, SOURCES
from watching import eventually

from isoscope.engine.failures import UnitsMissingError
from isoscope.store.keepers import SummaryKeeper
from isoscope.study.run import run
from isoscope.study.spec import Execution

UNITS = 11
SMALL = 700  # bytes: less than any state, more than a record, a plan and the lock


@pytest.fixture
def options(orders):
    return {"orders": str(orders), "units": UNITS, "stages": 2}


@pytest.fixture
def whole(options, tmp_path, orders):
    (tmp_path / "whole").mkdir()
    run(SumSpec.of(**options), Execution(output=str(tmp_path / "whole" / "run")))
    (orders / "log").unlink()
    return (tmp_path / "whole" / "run" / "state.safetensors").read_bytes()


@pytest.fixture
def target(tmp_path):
    (tmp_path / "again").mkdir()
    return tmp_path / "again" / "run"


def bits(target):
    return (target / "state.safetensors").read_bytes()


def test_a_unit_beyond_the_memory_of_its_process_is_given_up(options, whole, target, order):
    deadly = order("limited@1-6")
    where = {"output": str(target), "workers": 2, "retries": 1}
    with pytest.raises(UnitsMissingError, match=r"unit 6: .*MemoryError"):
        run(SumSpec.of(**options), Execution(engine="pool", **where))
    deadly.unlink()
    run(SumSpec.of(**options), Execution(engine="pool", **where))
    assert bits(target) == whole


def drive(options, **where):
    """Run a driver to its end whose files must stay small, and those of its workers."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an error instead, as a full disk gives
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, SMALL))

    words = [json.dumps(each) for each in ("SumSpec", options, where)]
    return subprocess.run(
        [sys.executable, "-c", DRIVE, *words],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES), str(HERE)])},
    )


def test_a_disk_that_cannot_be_written_ends_a_pool_and_nothing_is_lost(
    options, whole, target, order
):
    failing = [order(f"fail@1-{unit}") for unit in range(4, UNITS)]
    where = {"output": str(target), "engine": "pool", "workers": 2}
    with pytest.raises(UnitsMissingError):
        run(SumSpec.of(**options), Execution(**where))
    for each in failing:
        each.unlink()
    kept = sorted(path.name for path in target.glob("stage-1/node-*"))
    assert kept
    done = drive(options, **where)
    assert done.returncode != 0
    assert "cannot write a run" in done.stderr and "File too large" in done.stderr
    assert sorted(path.name for path in target.glob("stage-1/node-*")) == kept
    run(SumSpec.of(**options), Execution(**where))
    assert bits(target) == whole


OVER = [pytest.param("pool"), pytest.param("ray", marks=pytest.mark.slow)]


@pytest.mark.parametrize("engine", OVER)
def test_a_worker_that_cannot_write_ends_the_run_and_nothing_is_lost(
    options, whole, target, order, start, engine
):
    limit = order("full@1-6")
    where = {"output": str(target), "engine": engine, "workers": 2}
    driver = start("SumSpec", options, **where)
    _, err = driver.communicate()
    assert driver.returncode != 0
    assert "cannot write a run" in err and "File too large" in err
    limit.unlink()
    run(SumSpec.of(**options), Execution(output=str(target), engine="pool", workers=2))
    assert bits(target) == whole


@pytest.mark.parametrize("damage", ["flip", pytest.param("cut", marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", OVER)
def test_results_that_are_damaged_while_they_wait_are_computed_again(
    options, whole, target, order, start, log, engine, damage
):
    order(f"once-{damage}@1-7")
    where = {"output": str(target), "engine": engine, "workers": 2}
    driver = start("SumSpec", options, **where)
    _, err = driver.communicate()
    assert driver.returncode == 0, err
    assert log("damage")
    assert "was damaged on its way" in err
    assert bits(target) == whole


def test_in_one_process_too(options, whole, target, order, log, monkeypatch):
    monkeypatch.setitem(SummaryKeeper.__init__.__kwdefaults__, "patience", 0.0)  # into files
    order("once-flip@1-7")
    run(SumSpec.of(**options), Execution(output=str(target)))
    assert log("damage")
    assert bits(target) == whole


@pytest.mark.parametrize("engine", OVER)
def test_two_drivers_on_one_folder(options, whole, target, order, start, log, engine):
    waiting = order("wait@1-4")
    where = {"output": str(target), "engine": engine, "workers": 2}
    first = start("SumSpec", options, **where)
    eventually(lambda: ("begin", "1-4") in [line[1:] for line in log()])
    second = start("SumSpec", options, **where)
    _, err = second.communicate()
    assert second.returncode != 0 and "is at work on it" in err
    waiting.unlink()
    _, err = first.communicate()
    assert first.returncode == 0, err
    assert bits(target) == whole
    ended = [place for _, _, place in log("end")]
    assert sorted(ended) == sorted(f"{s}-{n}" for s in (1, 2) for n in range(UNITS))


NODES = """
import json, os, sys, signal, time
from ray.cluster_utils import Cluster
import ray
head = {"num_cpus": 0, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=head)
first, second = (cluster.add_node(num_cpus=1) for _ in range(2))
ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
import counting
from isoscope.study.run import run
from isoscope.study.spec import Execution
from isoscope.store.keepers import SummaryKeeper
import threading
def kill_node():
    log = sys.argv[2] + "/log"
    while not os.path.exists(log) or " begin 1-4" not in open(log).read():
        time.sleep(0.05)
    time.sleep(0.5)
    cluster.remove_node(second, allow_graceful=False)
    os.path.exists(sys.argv[2] + "/wait@1-4") and os.unlink(sys.argv[2] + "/wait@1-4")
threading.Thread(target=kill_node, daemon=True).start()
spec = getattr(counting, sys.argv[1]).of(orders=sys.argv[2], units=11, stages=2)
print(json.dumps(run(spec, Execution(engine="ray", workers=2, output=sys.argv[3]))), flush=True)
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SumSpec", "HeldSpec"])
def test_a_node_of_ray_that_is_killed_loses_nothing(options, whole, target, order, kind):
    order("wait@1-4")
    done = subprocess.run(
        [sys.executable, "-c", NODES, kind, options["orders"], str(target)],
        capture_output=True,
        text=True,
        timeout=280,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCES), str(HERE)]),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [77, 77]
    assert bits(target) == whole


LIMITED = """
import json, sys, psutil, ray
used = psutil.virtual_memory()
# What other processes of this machine may take meanwhile, or workers die for it.
share = min((used.total - used.available + 4e9) / used.total, 0.95)
ray.init("local", num_cpus=2, num_gpus=0, include_dashboard=False, object_store_memory=80 << 20,
    log_to_driver=False, logging_level="error", _node_ip_address="127.0.0.1",
    _system_config={"memory_usage_threshold": share, "memory_monitor_refresh_ms": 100,
    "task_oom_retries": 1})
import counting
from isoscope.study.run import run
from isoscope.study.spec import Execution
from isoscope.store.keepers import SummaryKeeper
from isoscope.errors import IsoscopeError
spec = counting.SumSpec.of(orders=sys.argv[1], units=11, stages=2)
try:
    run(spec, Execution(engine="ray", workers=1, output=sys.argv[2], retries=0))
except IsoscopeError as error:
    print(json.dumps([error.slug, error.problem]), flush=True)
"""


@pytest.mark.slow
def test_a_worker_that_ray_kills_for_its_memory_is_given_up(options, whole, target, order):
    deadly = order("grow@1-6")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, options["orders"], str(target)],
        capture_output=True,
        text=True,
        timeout=280,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(SOURCES), str(HERE)]),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",
        },
    )
    slug, problem = json.loads(done.stdout.splitlines()[-1])
    assert slug == "worker-died" and "unit 6" in problem and "memory" in problem.lower()
    deadly.unlink()
    run(SumSpec.of(**options), Execution(output=str(target), engine="pool", workers=2))
    assert bits(target) == whole


UNSEEN = """
mount -t tmpfs none {folder} || exit 9
exec {python} -c '
import ray, time, sys
ray.init("local", num_cpus=2, num_gpus=0, include_dashboard=False, object_store_memory=80 << 20,
    _node_ip_address="127.0.0.1", logging_level="error", log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
time.sleep(600)
'
"""


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="only root can hide a folder from a process")
def test_a_folder_that_workers_cannot_see_is_an_error_with_a_hint(options, tmp_path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SOURCES), str(HERE)]),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
    }
    script = UNSEEN.format(folder=hidden, python=sys.executable)
    cluster = subprocess.Popen(
        ["unshare", "-m", "sh", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        address = cluster.stdout.readline().strip()
        if not address:
            pytest.skip("no folder can be hidden here")
        where = {"output": str(hidden / "run"), "engine": "ray", "address": address}
        words = [json.dumps(each) for each in ("SumSpec", options, where)]
        done = subprocess.run(
            [sys.executable, "-c", DRIVE, *words],
            capture_output=True,
            text=True,
            timeout=200,
            env=environment,
        )
    finally:
        cluster.terminate()
        cluster.wait()
        cluster.stdout.close()
    assert done.returncode != 0
    assert "cannot see the run folder" in done.stderr, done.stderr[-2000:]
    assert "a file system that all machines of the cluster share" in done.stderr


def test_a_plan_of_another_run_is_refused(options, target, order, tmp_path):
    failing = order("fail@1-3")
    with pytest.raises(Exception, match="no such number"):
        run(SumSpec.of(**options), Execution(output=str(target)))
    failing.unlink()
    other = CountSpec.of(**{**options, "units": 3}).open(None).plan().encode()
    (target / "plan.msgpack").write_bytes(other)
    with pytest.raises(Exception, match="checksum") as caught:
        run(SumSpec.of(**options), Execution(output=str(target), engine="pool", workers=2))
    assert caught.value.slug == "store-damaged" and "--overwrite" in caught.value.hint
