"""The worker process: it serves one driver, hands over what it did, and ends with it."""

import io
import os
import pickle
import subprocess
import sys

import pytest
from counting import CountSpec, SumSpec
from watching import eventually, lives

from isoscope.engine import wire
from isoscope.engine.process import serve
from isoscope.errors import UndefinedError
from isoscope.store.keepers import SummaryKeeper


@pytest.fixture
def served(orders, tmp_path):
    """Return a function that serves messages in this process and returns the answers."""

    def serve_all(spec, *tasks):
        plan = spec.open(None).plan().encode()
        read, write = os.pipe()
        with io.FileIO(read) as requests, os.fdopen(write, "wb") as pipe:
            out = io.BytesIO()
            for message in (wire.Open(spec, plan, str(tmp_path / "scratch")), *tasks):
                wire.send(pipe, message)
            try:
                serve(requests, out)
            finally:
                content, found = out.getvalue(), []
                while content:
                    size = int.from_bytes(content[:8], "little")
                    found.append(pickle.loads(content[8 : 8 + size]))
                    content = content[8 + size :]
                served_messages[:] = found
        return found

    served_messages = []
    serve_all.messages = served_messages
    return serve_all


def task(units, tmp_path, stage=0, nodes=8):
    return wire.Assignment(stage, units, nodes, str(tmp_path / "stage-1"), "id", None)


def test_records_are_sent_one_by_one(served, orders, tmp_path):
    spec = CountSpec.of(orders=str(orders), units=8)
    found = served(spec, task((3,), tmp_path), None)
    kinds = [type(each).__name__ for each in found]
    assert kinds == ["Ready", "At", "Found", "Ready"]
    assert found[2].unit == 3 and found[2].record["number"] == 3


def test_summaries_are_merged_and_handed_over_as_files(served, orders, tmp_path, monkeypatch):
    # Whoever waits for a message does not find the end of the requests here.
    monkeypatch.setattr("isoscope.engine.process.wait", lambda *_: [])
    spec = SumSpec.of(orders=str(orders), units=8)
    found = served(spec, task((2, 3, 5), tmp_path), None)
    (kept,) = [each for each in found if isinstance(each, wire.Kept)]
    assert kept.units == (2, 3, 5)
    assert [(node.level, node.index) for node, _ in kept.nodes] == [(1, 1), (0, 5)]
    keeper = SummaryKeeper(8, tmp_path / "stage-1", id="id")
    assert keeper.missing() == [0, 1, 4, 6, 7]


def test_a_worker_that_is_requested_to_end_hands_over_after_the_unit(served, orders, tmp_path):
    spec = SumSpec.of(orders=str(orders), units=8)
    found = served(spec, task((0, 1, 2), tmp_path), None)
    (kept,) = [each for each in found if isinstance(each, wire.Kept)]
    assert kept.units == (0,)


def test_what_was_done_before_a_failure_is_handed_over(
    served, orders, order, tmp_path, monkeypatch
):
    monkeypatch.setattr("isoscope.engine.process.wait", lambda *_: [])
    order("fail@1-2")
    found = served(SumSpec.of(orders=str(orders), units=8), task((0, 1, 2, 3), tmp_path), None)
    kept = [each.units for each in found if isinstance(each, wire.Kept)]
    assert kept == [(0, 1), (3,)]  # after an error of ours the others are done
    (failed,) = [each for each in found if isinstance(each, wire.Failed)]
    assert failed.unit == 2 and isinstance(failed.unpack(), UndefinedError)


def test_a_worker_leaves_after_a_bug(served, orders, order, tmp_path, monkeypatch):
    monkeypatch.setattr("isoscope.engine.process.wait", lambda *_: [])
    order("bug@1-1")
    found = served(SumSpec.of(orders=str(orders), units=8), task((0, 1, 2), tmp_path), None)
    assert [type(each).__name__ for each in found[-3:]] == ["Kept", "Failed", "Leaving"]


DRIVER = """
import os, subprocess, sys
from isoscope.engine.pool import Process
from isoscope.engine.base import Job
from isoscope.store.working import Working
from isoscope.engine.plan import Plan
job = Job(None, Plan(stages=()), None, Working(None))
print(Process(job).popen.pid, flush=True)
sys.stdin.read()
"""


def test_a_worker_ends_with_its_driver_even_before_it_is_given_anything():
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    worker = int(driver.stdout.readline())
    assert lives(worker)
    driver.kill()
    driver.communicate()
    eventually(lambda: not lives(worker))
