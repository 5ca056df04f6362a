"""Queries, keys and values as attention sees them: after rotary position, head by head.

transformers looks its attention functions up by name in `AttentionInterface`. While someone
listens, the name a model uses leads to a wrapper that lets the listener see the arguments
and then calls the function it stands for. The model's config is left alone, because some
models read the name in it: Falcon given any name but `sdpa` takes another path.
"""

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from isoscope.site import HEADS

PARTS = HEADS
Seen = Callable[[nn.Module, str, Tensor], None]  # part, and (batch, heads, positions, width)

_seen_by: WeakKeyDictionary[nn.Module, list[Seen]] = WeakKeyDictionary()
_in_use: dict[str, int] = {}  # how many listen through the wrapper of this name
_lock = RLock()


@contextmanager
def seeing(body: nn.Module, modules: Iterable[nn.Module], seen: Seen) -> Generator[None]:
    """Call `seen` for queries, keys and values of these modules while the block runs."""
    with ExitStack() as stack:
        for name in implementations(body):
            stack.enter_context(_wrapped(name))
        for module in modules:
            _seen_by.setdefault(module, []).append(seen)
            stack.callback(_forget, module, seen)
        yield


def implementations(body: nn.Module) -> set[str]:
    """Return the names of the attention functions that a model's configs ask for."""
    configs = [getattr(module, "config", None) for module in body.modules()]
    names = {getattr(config, "_attn_implementation", None) for config in configs}
    return {name for name in names if isinstance(name, str)}


def _forget(module: nn.Module, seen: Seen) -> None:
    _seen_by[module].remove(seen)
    if not _seen_by[module]:
        del _seen_by[module]


@contextmanager
def _wrapped(name: str) -> Generator[None]:
    """Let a name lead to the wrapper until the last listener has left."""
    from transformers import AttentionInterface

    functions = AttentionInterface._global_mapping  # pyright: ignore[reportPrivateUsage]
    with _lock:
        if not _in_use.get(name):
            functions[name] = _Wrapper(name, functions.get(name))
        _in_use[name] = _in_use.get(name, 0) + 1
    try:
        yield
    finally:
        with _lock:
            _in_use[name] -= 1
            wrapper = functions.get(name)
            if not _in_use[name] and isinstance(wrapper, _Wrapper):
                if wrapper.original is None:
                    del functions[name]  # eager is not in the mapping: each model has its own
                else:
                    functions[name] = wrapper.original


class _Wrapper:
    """An attention function that shows its arguments to whoever listens to the module."""

    def __init__(self, name: str, original: Callable[..., Any] | None) -> None:
        self.name = name
        self.original = original

    def __call__(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *rest: Any,
        **more: Any,
    ) -> Any:
        for seen in tuple(_seen_by.get(module, ())):
            for part, tensor in zip(PARTS, (query, key, value), strict=True):
                seen(module, part, tensor)
        function = self.original or _eager(module)
        return function(module, query, key, value, *rest, **more)


def _eager(module: nn.Module) -> Callable[..., Any]:
    """Return the eager attention of the file that the module's class comes from."""
    for kind in type(module).__mro__:
        home = sys.modules.get(kind.__module__)
        if hasattr(home, "eager_attention_forward"):
            return home.eager_attention_forward  # pyright: ignore
    raise LookupError(f"{type(module).__name__} has no eager attention")
