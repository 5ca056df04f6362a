"""Being told of a module's passes, even by libraries that call its forward directly.

Hooks are run by calling the module; sentence-transformers calls `forward`, which runs none.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

from torch import nn

Before = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]
After = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], None]
Ended = Callable[[], None]
LISTENERS = "isoscope_listeners"


@dataclass(frozen=True, eq=False)
class _Listener:
    before: Before | None
    after: After | None
    ended: Ended | None
    asked: Mapping[str, Any]


@contextmanager
def told(
    module: nn.Module,
    *,
    before: Before | None = None,
    after: After | None = None,
    ended: Ended | None = None,
    asked: Mapping[str, Any] | None = None,
) -> Generator[None]:
    """Call `before` and `after` around every pass of a module until the block ends.

    `ended` is called after every pass, also after one that raised. What is `asked` is given
    to every pass by name, whatever the caller said. Blocks on one module may end in any
    order, also within a pass: they share one wrapper.
    """
    listeners = getattr(vars(module).get("forward"), LISTENERS, None)
    if listeners is None:
        listeners = _wrapped(module)
    listener = _Listener(before, after, ended, asked or {})
    listeners.append(listener)
    try:
        yield
    finally:
        listeners.remove(listener)
        if not listeners:
            _unwrapped(module)


def _wrapped(module: nn.Module) -> list[_Listener]:
    original = module.forward
    own = vars(module).get("forward")  # of one object, as accelerate sets it
    listeners: list[_Listener] = []

    @wraps(original)
    def forward(*given: Any, **named: Any) -> Any:
        hearing = tuple(listeners)
        for each in hearing:
            named = {**named, **each.asked}
        try:
            for each in hearing:
                if each.before is not None:
                    each.before(module, given, named)
            output = original(*given, **named)
            for each in hearing:
                if each.after is not None:
                    each.after(module, given, named, output)
            return output
        finally:
            for each in hearing:
                if each.ended is not None:
                    each.ended()

    setattr(forward, LISTENERS, listeners)
    cast(Any, forward).isoscope_own = own
    cast(Any, module).forward = forward
    return listeners


def _unwrapped(module: nn.Module) -> None:
    own = cast(Any, module.forward).isoscope_own
    if own is None:
        del module.forward
    else:
        cast(Any, module).forward = own
