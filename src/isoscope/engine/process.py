"""The worker process of the pool: opens a spec once, then does tasks until it is to end."""

import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from functools import partial
from io import FileIO
from multiprocessing.connection import wait
from typing import IO

from isoscope.engine import wire
from isoscope.engine.task import OpenJob

LOOK = 0.2  # seconds between two looks whether the driver is still there


def main(driver: int, descriptors: list[int]) -> None:
    """Serve the driver over standard input and output.

    The descriptors are the lock of the run, held as long as this process lives; processes
    that libraries start do not get them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what an interrupt ends
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    for each in descriptors:
        os.set_inheritable(each, False)
    requests = FileIO(os.dup(0), "rb")
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what libraries print must not get between messages
    try:
        serve(requests, out)
    except (EOFError, BrokenPipeError):  # the driver is gone or has closed the pipe
        os._exit(1)
    except BaseException as error:
        with suppress(BrokenPipeError):
            wire.send(out, wire.Failed.of(error, traceback.format_exc()))
        os._exit(1)


def serve(requests: FileIO, out: IO[bytes]) -> None:
    """Open what the driver names and do its tasks."""
    order = wire.receive(requests)
    assert isinstance(order, wire.Open)
    job = OpenJob.of(order)
    wire.send(out, wire.Ready())

    def is_called() -> bool:
        """Whether the driver ends this task, or is gone."""
        return bool(wait([requests.fileno()], 0))

    while (task := wire.receive(requests)) is not None:
        assert isinstance(task, wire.Assignment)
        if not job.run(task, partial(wire.send, out), is_called):
            wire.send(out, wire.Leaving())
            return
        wire.send(out, wire.Ready())


def _end_with(driver: int) -> None:
    """End this process when the driver has ended, even in the middle of a unit."""
    while os.getppid() == driver:
        time.sleep(LOOK)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(each) for each in sys.argv[2:]])
