"""A second process for work that is many small calls: threads would wait for each other."""

import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from signal import SIGKILL
from threading import active_count
from typing import TypeVar, cast

from isoscope.study.threads import map_in_threads

I = TypeVar("I")  # an item
R = TypeVar("R")


def map_in_fork(function: Callable[[I], R], items: Sequence[I]) -> list[R]:
    """Return what a function makes of each item, every second one made in a fork.

    Results of the fork are pickled. What it cannot make is made here, where it fails as it
    would without a fork. A process is forked only where that is safe: on Linux, with a single
    thread of Python and without torch. Otherwise two threads share the items.

    >>> map_in_fork(abs, [3, -4, 5])
    [3, 4, 5]
    """
    if len(items) < 2 or not _may_fork():
        return map_in_threads(function, items)
    receiver, sender = get_context("fork").Pipe(duplex=False)
    fork = os.fork()
    if not fork:
        receiver.close()
        _work_and_exit(function, items[1::2], sender.send)
    sender.close()
    made = False
    try:
        ours = [function(each) for each in items[::2]]
        try:
            theirs = cast("list[R]", receiver.recv())
        except (EOFError, OSError):
            theirs = [function(each) for each in items[1::2]]
        made = True
    finally:
        receiver.close()
        if not made:
            os.kill(fork, SIGKILL)
        os.waitpid(fork, 0)
    return [(theirs if place % 2 else ours)[place // 2] for place in range(len(items))]


def _may_fork() -> bool:
    """Whether nothing runs beside this thread that a fork would not have."""
    return (
        sys.platform == "linux"
        and len(os.sched_getaffinity(0)) > 1
        and active_count() == 1
        and "torch" not in sys.modules
    )


def _work_and_exit(
    function: Callable[[I], R], items: Sequence[I], send: Callable[[object], None]
) -> None:
    """Send the results and end this process, without what its parent would do at its end."""
    code = 1
    try:
        send([function(each) for each in items])
        code = 0
    finally:
        os._exit(code)
