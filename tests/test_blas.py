"""Threads of linear algebra: one for a while, and afterwards as many as before."""

from pathlib import Path
from threading import Thread

from threadpoolctl import threadpool_info, threadpool_limits

import isoscope
from isoscope.blas import one_blas_thread


def threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_calls_that_overlap_leave_as_many_threads_as_there_were():
    with threadpool_limits(2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert threads() == {1}
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}


def test_measurements_in_threads_do_too():
    rows = [[1.0, 2.0], [0.5, -1.0], [3.0, 0.0], [0.0, 1.0]] * 50
    with threadpool_limits(2, user_api="blas"):
        calls = [Thread(target=isoscope.measure, args=(rows,)) for _ in range(4)]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
        assert threads() == {2}


def test_nobody_else_sets_them():
    source = Path(isoscope.__file__).parent
    users = [each.name for each in source.rglob("*.py") if "threadpoolctl" in each.read_text()]
    assert users == ["blas.py"]
