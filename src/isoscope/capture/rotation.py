"""Queries and keys before rotary positions: the arguments of the functions that rotate.

They are wrapped in the file of the module's own class while someone listens.
"""

import re
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from types import ModuleType

from torch import Tensor, nn

from isoscope.dataclass import dataclass

_ROTATES = re.compile(r"apply_.*rotary", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rotation:
    """One call of a function that rotates by position: both, or queries and keys apart."""

    before: tuple[Tensor, ...]
    after: tuple[Tensor, ...]


_listeners: list[Callable[[Rotation], None]] = []
_lock = threading.RLock()


@contextmanager
def observe_rotation(
    modules: Iterable[nn.Module], observe: Callable[[Rotation], None]
) -> Generator[None]:
    """Call `observe` when a function of the modules' own files rotates queries or keys."""
    homes = {sys.modules.get(type(module).__module__) for module in modules}
    with _lock:
        _listeners.append(observe)
        for home in homes:
            if home is not None:
                _wrap_rotations(home)
    try:
        yield
    finally:
        with _lock:
            _listeners.remove(observe)
            if not _listeners:
                for (home, name), function in _wrapped.items():
                    setattr(home, name, function)
                _wrapped.clear()


_wrapped: dict[tuple[ModuleType, str], Callable[..., object]] = {}


def _wrap_rotations(home: ModuleType) -> None:
    for name, function in vars(home).copy().items():
        if callable(function) and _ROTATES.match(name) and (home, name) not in _wrapped:
            _wrapped[home, name] = function
            setattr(home, name, partial(_rotate, function))


def _rotate(function: Callable[..., object], *args: object, **more: object) -> object:
    result = function(*args, **more)
    after = result if isinstance(result, tuple) else (result,)
    tensors = tuple(each.detach() for each in after if isinstance(each, Tensor))
    before = tuple(each for each in args if isinstance(each, Tensor))[: len(tensors)]
    same = all(b.shape == a.shape for b, a in zip(before, tensors, strict=False))
    if len(before) == len(tensors) and tensors and same:
        for observe in tuple(_listeners):
            observe(Rotation(tuple(each.detach() for each in before), tensors))
    return result
