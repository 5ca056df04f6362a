"""Drivers as processes of their own, and what they leave behind."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from watching import children

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src"

# A suite that was started in the background ignores SIGINT, and its children would too.
DRIVE = """
import sys, json, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
import counting
from isoscope.study.spec import Execution
from isoscope.study.run import run
from isoscope.engine import Notify
kind, options, where = (json.loads(each) for each in sys.argv[1:])
spec = getattr(counting, kind).of(**options)
say = lambda text: print(text, file=sys.stderr, flush=True)
print(json.dumps(run(spec, Execution(**where), notify=Notify(say=say))))
"""


@pytest.fixture
def orders(tmp_path):
    """Return the folder whose files say what units do."""
    folder = tmp_path / "orders"
    folder.mkdir()
    (folder / "content").write_text("some rows")
    return folder


@pytest.fixture
def order(orders):
    """Return a function that writes an order, such as wait@1-3."""

    def write(name, text=""):
        (orders / name).write_text(text)
        return orders / name

    return write


@pytest.fixture
def log(orders):
    """Return a function that reads what units did: process, word, where."""

    def read(word=None):
        path = orders / "log"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        found = [(int(line.split()[0]), *line.split()[1:]) for line in lines]
        return [line for line in found if word is None or line[1] == word]

    return read


@pytest.fixture
def start():
    """Return a function that starts a driver; what still runs at the end is killed."""
    started = []

    def begin(kind, options, **where):
        words = [json.dumps(each) for each in (kind, options, where)]
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVE, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES), str(HERE)])},
        )
        started.append(driver)
        return driver

    yield begin
    for driver in started:
        for pid in children(driver.pid) if driver.poll() is None else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        driver.kill()
        driver.wait()
        driver.stdout.close()  # not read to its end: a process that is left may hold it open
        driver.stderr.close()
