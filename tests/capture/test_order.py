"""Batches that run side by side are heard at each site in their order."""

import random
import threading
import time

import pytest

from isoscope.capture.order import Order, StoppedError


def test_every_site_hears_batches_in_their_order_whichever_thread_is_faster():
    order, heard, taking = Order(), [], threading.Lock()
    sites, rng = ["embed", "resid.0", "resid.1"], random.Random(0)
    pauses = {(number, site): rng.random() / 200 for number in range(12) for site in sites}

    def work():
        while True:
            with taking:
                number = order.begin()
            if number >= 12:
                order.end(number)
                return
            for site in sites:
                time.sleep(pauses[number, site])
                with order.turn(number, site):
                    heard.append((site, number))
            order.end(number)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for site in sites:
        assert [number for where, number in heard if where == site] == list(range(12))


def test_a_batch_that_misses_a_site_holds_up_none():
    order = Order()
    first, second = order.begin(), order.begin()
    order.end(first)
    with order.turn(second, "pooled"):
        pass


def test_a_batch_that_waits_is_stopped():
    order, caught = Order(), []
    first, second = order.begin(), order.begin()

    def work():
        try:
            with order.turn(second, "embed"):
                caught.append("heard")
        except StoppedError:
            caught.append("stopped")

    thread = threading.Thread(target=work)
    thread.start()
    order.stop()
    thread.join()
    assert caught == ["stopped"]
    with pytest.raises(StoppedError), order.turn(first, "embed"):
        pass
