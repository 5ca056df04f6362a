"""Lazy properties: once for each instance, and never waiting for another instance."""

import threading

from isoscope.accumulate.sums import lazy


class Counted:
    """Counts how often its value was made."""

    def __init__(self):
        self.times = 0

    @lazy
    def value(self):
        """The value."""
        self.times += 1
        return [self.times]


def test_a_value_is_made_once_for_each_instance():
    one, other = Counted(), Counted()
    assert one.value is one.value
    assert (one.times, other.times) == (1, 0)
    assert other.value == [1]


def test_the_class_shows_the_property_and_its_words():
    assert isinstance(Counted.value, lazy)
    assert Counted.value.__doc__ == "The value."


def test_instances_do_not_wait_for_each_other():
    # Each waits inside the property for the other to be inside it too.
    barrier = threading.Barrier(2, timeout=5)

    class Meeting:
        @lazy
        def value(self):
            barrier.wait()
            return True

    meetings = [Meeting(), Meeting()]
    threads = [threading.Thread(target=lambda m=m: m.value) for m in meetings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(m.__dict__.get("value") for m in meetings)
