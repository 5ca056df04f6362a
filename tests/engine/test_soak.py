"""A soak: two hundred faults over a thousand units end in the bytes of an undisturbed run."""

import os
import random
import signal
import threading
import time
from contextlib import suppress

import pytest
from counting import SumSpec
from watching import children

from isoscope.study.run import run
from isoscope.study.spec import Execution

UNITS, FAULTS = 1000, 200
KINDS = ("once-die", "once-bug", "once-fail", "once-trouble", "once-limited")


def kill_and_damage(driver, target, rng, stop, done):
    """Kill workers, and flip a bit or cut the end of results, until so many are done."""
    while not stop.is_set() and done[0] < FAULTS // 2:
        time.sleep(rng.random() * 0.1)
        files = list(target.glob("stage-*/**/node-*"))
        with suppress(OSError, IndexError, ProcessLookupError):
            if rng.random() < 0.6 or not files:
                os.kill(rng.choice(children(driver)), signal.SIGKILL)
            else:
                path = rng.choice(files)
                content = bytearray(path.read_bytes())
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
                path.write_bytes(content if rng.random() < 0.5 else content[:-9])
            done[0] += 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_random_faults_change_no_byte(orders, order, tmp_path, start, capsys):
    options = {"orders": str(orders), "units": UNITS, "stages": 1}
    spec = SumSpec.of(**options)
    for name in ("whole", "again"):
        (tmp_path / name).mkdir()
    run(spec, Execution(output=str(tmp_path / "whole" / "run")))
    rng = random.Random(21)
    for unit in rng.sample(range(UNITS), FAULTS // 2):
        order(f"{rng.choice(KINDS)}@1-{unit}")
    target = tmp_path / "again" / "run"
    done, drivers = [0], 0
    where = {"output": str(target), "engine": "pool", "workers": 2, "retries": 5}
    while not (target / "run.json").exists():
        drivers += 1
        driver = start("SumSpec", options, **where)
        stop = threading.Event()
        arguments = (driver.pid, target, rng, stop, done)
        thread = threading.Thread(target=kill_and_damage, args=arguments)
        thread.start()
        if drivers < 10:  # the driver is killed as well
            time.sleep(2 + 4 * rng.random())
            if driver.poll() is None:
                driver.kill()
                done[0] += 1
        driver.communicate()
        stop.set()
        thread.join()
        assert drivers < 60
    left = len(list(orders.glob("once-*")))
    with capsys.disabled():
        print(
            f"\n{FAULTS // 2 - left} faults in units, {done[0]} from outside, {drivers} drivers"
        )
    assert left == 0
    whole = (tmp_path / "whole" / "run" / "state.safetensors").read_bytes()
    assert (target / "state.safetensors").read_bytes() == whole
