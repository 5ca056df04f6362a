"""A soak: two hundred faults over a thousand units end in the bytes of an undisturbed run."""

import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from counting import SumSpec
from watching import children, descendants

from isoscope.study.run import run
from isoscope.study.spec import Execution

UNITS, FAULTS = 1000, 200
KINDS = ("once-die", "once-bug", "once-fail", "once-trouble", "once-limited")


def workers_of(driver, engine):
    """Return the processes that do units, or wait for some."""
    if engine == "pool":
        return children(driver)
    found = []
    for pid in descendants(driver):
        with suppress(OSError):
            if b"ray::run_task" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def kill_and_damage(driver, engine, target, rng, stop, done):
    """Kill workers, and flip a bit or cut the end of results, until so many are done."""
    while not stop.is_set() and done[0] < FAULTS // 2:
        time.sleep(rng.random() * (0.1 if engine == "pool" else 0.5))
        files = list(target.glob("stage-*/**/node-*"))
        with suppress(OSError, IndexError, ProcessLookupError):
            if rng.random() < 0.6 or not files:
                os.kill(rng.choice(workers_of(driver, engine)), signal.SIGKILL)
            else:
                path = rng.choice(files)
                content = bytearray(path.read_bytes())
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
                path.write_bytes(content if rng.random() < 0.5 else content[:-9])
            done[0] += 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ["pool", "ray"])
def test_two_hundred_random_faults_change_no_byte(
    orders, order, tmp_path, start, capsys, engine
):
    options = {"orders": str(orders), "units": UNITS, "stages": 1}
    spec = SumSpec.of(**options)
    for name in ("whole", "again"):
        (tmp_path / name).mkdir()
    run(spec, Execution(output=str(tmp_path / "whole" / "run")))
    rng = random.Random(21)
    for unit in rng.sample(range(UNITS), FAULTS // 2):
        order(f"{rng.choice(KINDS)}@1-{unit}")
    (orders / "pause").write_text("0.05")  # or all is done before there were faults enough
    target = tmp_path / "again" / "run"
    done, drivers = [0], 0
    where = {"output": str(target), "engine": engine, "workers": 2, "retries": 5}
    while not (target / "run.json").exists():
        drivers += 1
        driver = start("SumSpec", options, **where)
        stop = threading.Event()
        arguments = (driver.pid, engine, target, rng, stop, done)
        thread = threading.Thread(target=kill_and_damage, args=arguments)
        thread.start()
        if drivers < (10 if engine == "pool" else 5):  # the driver is killed as well
            time.sleep((2 if engine == "pool" else 8) + 4 * rng.random())
            if driver.poll() is None:
                driver.kill()
                done[0] += 1
        driver.communicate()
        stop.set()
        thread.join()
        assert drivers < 60
    left = len(list(orders.glob("once-*")))
    with capsys.disabled():
        print(f"\n{engine}: {FAULTS // 2 - left} faults in units, ", end="")
        print(f"{done[0]} from outside, {drivers} drivers")
    assert left == 0 and done[0] >= FAULTS // 2
    whole = (tmp_path / "whole" / "run" / "state.safetensors").read_bytes()
    assert (target / "state.safetensors").read_bytes() == whole
