"""`pytest --forks N`: tests are collected once, and N forks of that process share them.

Workers of pytest-xdist each import torch, transformers and all test files anew: thirteen
seconds of a core for each. A fork has them. Each worker begins with a range of its own, so
that most fixtures are built by one; who has finished takes half of what another has left.
After tests marked `spoils_process`, which leave threads that no fork survives, a new worker
takes over.
"""

import gc
import multiprocessing.connection
import os
import signal
import traceback
import warnings
from collections import deque
from itertools import pairwise
from multiprocessing.connection import Connection

import pytest

PORTION = 4  # tests that a worker is given at a time, fewer towards the end


def pytest_addoption(parser):
    parser.addoption("--forks", type=int, default=0, help="Share the tests among N forks.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    if not session.config.option.forks or session.config.option.collectonly:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        return None  # pytest says what could not be collected
    Driver(session, session.config.option.forks).run()
    return True


class Worker:
    """A fork, the tests that are to be its own, and those it has been given."""

    def __init__(self, session, number, base, others):
        ours, theirs = multiprocessing.connection.Pipe()
        self.pid = os.fork()
        if not self.pid:
            for each in (ours, *others):  # or the end of the driver would not be noticed
                each.close()
            _serve(session, theirs, base / f"worker-{number}")
        theirs.close()
        self.connection, self.number = ours, number
        self.given = deque()  # in the order in which they run


class Driver:
    """Hands out tests and passes on what workers report."""

    def __init__(self, session, count):
        self.session, self.config = session, session.config
        self.base = self.config._tmp_path_factory.getbasetemp()
        ends = [len(session.items) * number // count for number in range(count + 1)]
        self.ranges = [deque(range(*each)) for each in pairwise(ends)]
        self.started = 0
        self.workers = {}
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.showfspath = False  # tests of several files run at a time

    def run(self):
        # Millions of objects of torch and of collected tests stay: workers need neither go
        # through them for garbage nor copy their pages.
        gc.collect()
        gc.freeze()
        try:
            for place in range(len(self.ranges)):
                self._start(place)
            while self.workers:
                for connection in multiprocessing.connection.wait(list(self.workers)):
                    self._listen(connection)
        finally:
            for worker, _ in self.workers.values():
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)

    def _start(self, place):
        worker = Worker(self.session, self.started, self.base, self.workers)
        self.started += 1
        self.workers[worker.connection] = worker, place

    def _listen(self, connection: Connection):
        worker, place = self.workers[connection]
        try:
            kind, content = connection.recv()
        except (EOFError, ConnectionResetError):
            self._bury(worker, place)
            return
        hook = self.config.hook
        if kind == "more":
            portion = self._portion(place)
            worker.given.extend(portion)
            connection.send(portion)
        elif kind == "report":
            self._pass_on(
                hook.pytest_report_from_serializable(config=self.config, data=content)
            )
        elif kind == "spoilt":
            self._replace(worker, place)
        elif kind == "ended":
            item = self.session.items[worker.given.popleft()]
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        elif kind == "warning":
            message, category, file, line, when, nodeid = content
            said = warnings.WarningMessage(category(message), category, file, line)
            hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": said, "when": when, "nodeid": nodeid,
                        "location": None}
            )  # fmt: skip

    def _portion(self, place):
        own = self.ranges[place]
        if not own:
            longest = max(self.ranges, key=len)
            for _ in range((len(longest) + 1) // 2):
                own.appendleft(longest.pop())
        # Nobody takes what a worker was given: it must not wait behind minutes of another test.
        count = min(PORTION, 1 + len(own) // 8, len(own))
        return [own.popleft() for _ in range(count)]

    def _pass_on(self, report):
        self.config.hook.pytest_runtest_logreport(report=report)
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def _replace(self, worker, place):
        """Let a new worker do what is left, after a test that leaves no process to fork."""
        del self.workers[worker.connection]
        worker.connection.close()
        os.waitpid(worker.pid, 0)
        self.ranges[place].extendleft(reversed(worker.given))
        self._start(place)

    def _bury(self, worker, place):
        """Let what a dead worker was at fail, and another do the rest."""
        del self.workers[worker.connection]
        worker.connection.close()
        code = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if not worker.given:
            if code:
                raise RuntimeError(f"worker {worker.number} ended with code {code}")
            return
        item = self.session.items[worker.given.popleft()]
        why = f"worker {worker.number} ended with code {code} in this test"
        self._pass_on(pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call"))
        self.ranges[place].extendleft(reversed(worker.given))
        self._start(place)


def _serve(session, connection, base):
    """Run tests as they are handed out, report on them, and end the process."""
    code = 1
    try:
        _become_worker(session.config, base)
        reports = Reports(session.config, connection)
        session.config.pluginmanager.register(reports)
        reports.known = False
        items, given = session.items, deque()
        while True:
            while len(given) < 2:  # the next one decides which fixtures are kept
                connection.send(("more", None))
                portion = connection.recv()
                if not portion:
                    break
                given.extend(portion)
            if not given:
                break
            item = items[given.popleft()]
            following = items[given[0]] if given else None
            spoilt = _spoils(item) and not (following and _spoils(following))
            following = None if spoilt else following
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            connection.send(("ended", None))
            if spoilt:
                connection.send(("spoilt", None))
                break
        code = 0
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass  # the driver is gone
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _spoils(item):
    return item.get_closest_marker("spoils_process") is not None


def _become_worker(config, base):
    """Let nothing that has a state be shared with the driver: output, temporary folders."""
    os.environ["PYTEST_FORK"] = base.name
    plugins = config.pluginmanager
    capture = plugins.get_plugin("capturemanager")
    capture.read_global_capture()
    capture.stop_global_capturing()
    capture.start_global_capturing()
    plugins.unregister(name="terminalreporter")
    factory = config._tmp_path_factory
    factory._basetemp, factory._given_basetemp = None, base


class Reports:
    """Sends what pytest says of tests to the driver."""

    def __init__(self, config, connection):
        self.config, self.connection = config, connection
        # Whether what is heard is known to the driver: pytest tells a plugin that comes late
        # of all warnings so far, and a worker that takes over comes late.
        self.known = True

    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.connection.send(("report", data))

    def pytest_warning_recorded(self, warning_message, when, nodeid):
        if self.known:
            return
        said = warning_message
        category = said.category if said.category.__module__ == "builtins" else UserWarning
        content = (str(said.message), category, said.filename, said.lineno, when, nodeid)
        self.connection.send(("warning", content))
