"""Items worked on by several threads: in order, one at a time each, and with their errors."""

from threading import Event, get_ident

import pytest

from isoscope.study.threads import map_in_threads


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_are_in_the_order_of_the_items(threads):
    assert map_in_threads(lambda n: n * n, range(50), threads) == [n * n for n in range(50)]


def test_two_threads_work_at_once():
    met = [Event(), Event()]

    def meet(number):
        met[number].set()
        assert met[1 - number].wait(10)
        return get_ident()

    assert len(set(map_in_threads(meet, [0, 1], 2))) == 2


def test_no_more_items_are_taken_than_threads_work_on():
    taken, done = [], []

    def items():
        for number in range(20):
            assert number - len(done) < 2
            taken.append(number)
            yield number

    map_in_threads(done.append, items(), 2)
    assert len(taken) == len(done) == 20


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_ends_the_work_and_is_raised(threads):
    def fail(number):
        if number == 3:
            raise StopIteration("three")
        return number

    with pytest.raises(StopIteration, match="three"):
        map_in_threads(fail, iter(range(10**9)), threads)
