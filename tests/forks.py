"""Processes that are forks of this one: a new one would take five seconds to load torch."""

import os
import signal
import sys
import time
import traceback
from contextlib import suppress
from io import FileIO

import torch

from isoscope.engine import process


class Fork:
    """Work in another process, which ends with 0 unless the work raises or exits otherwise."""

    def __init__(self, work, *given):
        sys.stdout.flush()
        sys.stderr.flush()
        self.code = None
        self.pid = os.fork()
        if not self.pid:
            os._exit(_done(work, given))

    def poll(self):
        """Return how it ended, less than 0 by a signal, or None while it runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def wait(self, seconds):
        """Return how it ended; kill it where that takes longer."""
        end = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > end:
                self.kill()
                raise AssertionError(f"a process did not end in {seconds} s")
            time.sleep(0.01)
        return self.code

    @property
    def returncode(self):
        return self.code

    def kill(self):
        """Kill it, as the system would for want of memory, and wait until it is gone."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class ForkedWorker(Fork):
    """A worker process of the pool, as `subprocess.Popen` starts it, but a fork."""

    pipes = set()  # ends of the driver, which no other worker may hold open  # noqa: RUF012

    def __init__(self, words, *, env, **_):
        requests, ours = os.pipe()
        theirs, out = os.pipe()
        self.pipes.update((ours, theirs))
        super().__init__(self._serve, words, env, requests, out)
        os.close(requests)
        os.close(out)
        self.stdin, self.stdout = (
            _Pipe(each, mode) for each, mode in ((ours, "wb"), (theirs, "rb"))
        )

    def _serve(self, words, env, requests, out):
        for each in self.pipes:
            os.close(each)
        os.dup2(requests, 0)
        os.dup2(out, 1)
        os.close(requests)
        os.close(out)
        os.environ.update(env)
        first = words.index("isoscope.engine.process") + 1
        driver, *descriptors = map(int, words[first:])
        process.main(driver, descriptors)

    def wait(self, seconds=60):
        return super().wait(seconds)


class _Pipe(FileIO):
    def close(self):
        if not self.closed:
            ForkedWorker.pipes.discard(self.fileno())
        super().close()


def _done(work, given):
    torch.set_num_threads(1)  # those of the other process are not here, and would be waited for
    try:
        work(*given)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
