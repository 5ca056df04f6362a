"""What `pytest --forks` reports is what pytest reports."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import os, warnings
import pytest

@pytest.fixture(scope="session")
def base(tmp_path_factory):
    return tmp_path_factory.getbasetemp()

@pytest.mark.parametrize("number", range(20))
def test_number(number, base, tmp_path):
    print("number", number)
    assert tmp_path.parent == base
    assert number != 7

def test_death():
    os._exit(3)

def test_warning():
    warnings.warn("look out", FutureWarning)

@pytest.mark.skip(reason="not today")
def test_skipped():
    pass
"""


SPOILING = """
import os
import pytest

pids = []

@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    yield
    (tmp_path_factory.getbasetemp().parent.parent / f"torn-{os.getpid()}").touch()

@pytest.mark.parametrize("number", range(3))
def test_before(number, kept):
    pids.append(os.getpid())

@pytest.mark.spoils_process
@pytest.mark.parametrize("number", range(2))
def test_spoiling(number, kept):
    pids.append(os.getpid())
    assert len(set(pids)) == 1

@pytest.mark.parametrize("number", range(9))
def test_after(number, kept):
    assert not pids
"""

# The first of eight tests lasts until the fourth is done; each of two forks begins with four.
WAITING = """
import time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(8))
def test_number(number, tmp_path):
    done = tmp_path.parent.parent / "done"
    end = time.monotonic() + 60
    while number == 0 and not done.exists():
        assert time.monotonic() < end, "nobody took the fourth test"
        time.sleep(0.01)
    if number == 3:
        done.touch()
"""


def run_pytest(folder, *words, tests=TESTS):
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = spoils_process\n")
    (folder / "test_some.py").write_text(tests)
    plugins = ("-p", "forked_session", "-p", "no:cacheprovider")
    # Not where other sessions clean up what is old: what they meet there is a warning here.
    plugins += ("--basetemp", str(folder / "base"))
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-q", "-ra", *words],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent),
             "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip


def test_failures_deaths_warnings_and_skips_are_reported(tmp_path):
    done = run_pytest(tmp_path, "--forks", "3")
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith(
        "2 failed, 20 passed, 1 skipped, 1 warning in "
    ), done.stdout
    assert "FAILED test_some.py::test_number[7] - assert 7 != 7" in done.stdout
    assert "number 7\n" in done.stdout and "number 8\n" not in done.stdout
    assert "ended with code 3 in this test" in done.stdout
    assert "FutureWarning: look out" in done.stdout
    assert "not today" in done.stdout


EARLY = """
import warnings
import pytest

def test_warning():
    warnings.warn("look out", FutureWarning)

@pytest.mark.spoils_process
def test_spoiling():
    pass

def test_after():
    pass
"""


def test_a_worker_that_takes_over_repeats_no_warning(tmp_path):
    done = run_pytest(tmp_path, "--forks", "1", tests=EARLY)
    assert done.stdout.splitlines()[-1].startswith("3 passed, 1 warning in "), done.stdout


def test_the_first_failure_ends_it_where_that_is_asked_for(tmp_path):
    done = run_pytest(tmp_path, "--forks", "1", "-x")
    assert done.returncode == 1, done.stderr
    assert "1 failed, 7 passed in " in done.stdout


def test_after_a_test_that_spoils_its_process_another_takes_over(tmp_path):
    done = run_pytest(tmp_path, "--forks", "1", tests=SPOILING)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("14 passed in ")
    assert len(list(tmp_path.glob("torn-*"))) == 2  # fixtures of both workers


def test_the_last_tests_do_not_wait_behind_a_long_one(tmp_path):
    done = run_pytest(tmp_path, "--forks", "2", tests=WAITING)
    assert done.returncode == 0, done.stdout
