"""Two threads for work that spends its time in linear algebra, which lets others run."""

from collections.abc import Callable, Iterable
from threading import Lock, Thread
from typing import TypeVar

I = TypeVar("I")  # an item
R = TypeVar("R")
THREADS = 2


def map_in_threads(
    function: Callable[[I], R], items: Iterable[I], threads: int = THREADS
) -> list[R]:
    """Return what a function makes of each item, in their order, worked out on threads.

    Items are taken one at a time by whichever thread is free, so that no more of them are in
    memory than there are threads. This thread is one of them. An error ends the work.

    >>> map_in_threads(abs, [3, -4, 5])
    [3, 4, 5]
    """
    numbered, results = enumerate(items), dict[int, R]()
    taking = Lock()
    errors: list[BaseException] = []

    def take_and_work() -> None:
        try:
            while not errors:
                with taking:
                    taken = next(numbered, None)
                if taken is None:
                    return
                results[taken[0]] = function(taken[1])
                del taken
        except BaseException as error:  # also an interrupt, which comes to the main thread
            errors.append(error)

    others = [Thread(target=take_and_work, daemon=True) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    take_and_work()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in sorted(results)]
