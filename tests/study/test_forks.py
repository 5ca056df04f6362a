"""Items shared with a fork: the same results, also where the fork cannot make them."""

import os
import subprocess
import sys
import threading

import pytest

from isoscope.study.forks import map_in_fork

HEAD = """
import os, signal, sys
from isoscope.study.forks import map_in_fork

def where(item):
    return item, os.getpid()
"""


def run(body):
    """Return what a fresh process prints: this one may have threads, or torch."""
    found = subprocess.run(
        [sys.executable, "-c", HEAD + body], capture_output=True, text=True, timeout=60
    )
    assert found.stderr == ""
    assert found.returncode == 0
    return found.stdout


def test_every_second_item_is_made_in_another_process_and_comes_in_its_place():
    said = run(
        "found = map_in_fork(where, list(range(7)))\n"
        "assert [item for item, _ in found] == list(range(7))\n"
        "pids = [pid for _, pid in found]\n"
        "assert set(pids[::2]) == {os.getpid()} and len(set(pids[1::2])) == 1\n"
        "print(len(set(pids)))\n"
    )
    assert said == "2\n"


@pytest.mark.parametrize(
    "how", ["os.kill(os.getpid(), signal.SIGKILL)", "sys.exit(3)", "raise MemoryError"]
)
def test_what_a_fork_does_not_make_is_made_here(how):
    run(
        "parent = os.getpid()\n"
        "def fails_there(item):\n"
        f"    if os.getpid() != parent: {how}\n"
        "    return item\n"
        "assert map_in_fork(fails_there, [1, 2, 3, 4]) == [1, 2, 3, 4]\n"
    )


@pytest.mark.parametrize("failing", [1, 2])
def test_an_error_is_that_of_the_item_and_leaves_no_process(failing):
    run(
        "def fails(item):\n"
        f"    if item == {failing}: raise ValueError(item)\n"
        "    return item\n"
        "try:\n"
        "    map_in_fork(fails, [1, 2, 3, 4])\n"
        "except ValueError as error:\n"
        f"    assert error.args == ({failing},)\n"
        "else:\n"
        "    raise AssertionError\n"
        "try:\n"
        "    os.waitpid(-1, os.WNOHANG)\n"
        "except ChildProcessError:\n"
        "    print('none')\n"
    )


def test_results_larger_than_a_pipe_holds_arrive():
    assert run("print(sum(map(len, map_in_fork(lambda n: bytes(n), [10**7] * 4))))") == (
        "40000000\n"
    )


def test_nothing_is_forked_beside_another_thread():
    there = threading.Event()
    thread = threading.Thread(target=there.wait)
    thread.start()
    try:
        assert set(map_in_fork(lambda _: os.getpid(), [1, 2, 3])) == {os.getpid()}
    finally:
        there.set()
        thread.join()
