"""Queries, keys and values as attention receives them: after rotary position, by head.

transformers looks its attention functions up by name in `AttentionInterface`. While someone
listens, the name a model uses leads to a wrapper that reports the arguments and then calls
the function it stands for. The model's config is left alone, because some models read the
name in it: with any name but `sdpa` Falcon takes another path.

Attention that does not go through the interface is observed in one of three ways, the first
that fits: the method `_attn` that is called with them (gptj, gpt_neo, codegen); one
projection that the module itself splits (falcon, bloom), rotated where it has rotary
positions; three projections (canine, deberta), split into heads.
"""

import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import RLock
from typing import Any, Literal
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from isoscope.capture.discover import CROSS
from isoscope.capture.stacks import Trace
from isoscope.capture.tap import Calls, Hear
from isoscope.dataclass import dataclass
from isoscope.site import HEADS, Site

Way = Literal["interface", "projection"]
Observe = Callable[[nn.Module, str, Tensor], None]  # part, and (batch, heads, positions, width)

_observers: WeakKeyDictionary[nn.Module, list[Observe]] = WeakKeyDictionary()
_in_use: dict[str, int] = {}  # how many listen through the wrapper of this name
_lock = RLock()


@contextmanager
def observe_attention(
    body: nn.Module, modules: Iterable[nn.Module], observe: Observe
) -> Generator[None]:
    """Call `observe` for queries, keys and values of these modules while the block runs."""
    with ExitStack() as stack:
        for name in implementations(body):
            stack.enter_context(_wrap(name))
        for module in modules:
            _observers.setdefault(module, []).append(observe)
            stack.callback(_observers[module].remove, observe)
        yield


def implementations(body: nn.Module) -> set[str]:
    """Return the names of the attention functions that a model's configs ask for."""
    configs = [getattr(module, "config", None) for module in body.modules()]
    names = {getattr(config, "_attn_implementation", None) for config in configs}
    return {name for name in names if isinstance(name, str)}


@contextmanager
def _wrap(name: str) -> Generator[None]:
    """Let a name lead to the wrapper until the last listener has left."""
    from transformers import AttentionInterface

    functions = AttentionInterface._global_mapping  # pyright: ignore[reportPrivateUsage]
    with _lock:
        if not _in_use.get(name):
            functions[name] = _Wrapper(functions.get(name))
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


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """An attention function that shows its arguments to whoever listens to the module."""

    original: Callable[..., object] | None

    def __call__(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *rest: object,
        **more: object,
    ) -> object:
        for observe in tuple(_observers.get(module, ())):
            for part, tensor in zip(HEADS, (query, key, value), strict=True):
                observe(module, part, tensor)
        function = self.original or _eager(module)
        return function(module, query, key, value, *rest, **more)


def _eager(module: nn.Module) -> Callable[..., object]:
    """Return the eager attention of the file that the module's class comes from."""
    for kind in type(module).__mro__:
        home = sys.modules.get(kind.__module__)
        if hasattr(home, "eager_attention_forward"):
            return home.eager_attention_forward  # pyright: ignore
    raise LookupError(f"{type(module).__name__} has no eager attention")


_TRIPLES = (
    ("query", "key", "value"),
    ("query_proj", "key_proj", "value_proj"),
    ("q_proj", "k_proj", "v_proj"),
    ("q_lin", "k_lin", "v_lin"),
    ("q", "k", "v"),
)
_HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head")
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads", *_HEADS)


@contextmanager
def observe_projections(modules: Iterable[nn.Module], observe: Observe) -> Generator[None]:
    """Call `observe` for queries, keys and values of these modules while the block runs.

    Of modules that project in a way that is not known, nothing is observed.
    """
    with ExitStack() as stack:
        for module in modules:
            if callable(getattr(module, "_attn", None)):
                _by_method(module, observe, stack)
            elif hasattr(module, "query_key_value") and _splitter(module) is not None:
                _by_split(module, observe, stack)
            elif _triple(module) is not None and _count(module, _HEADS):
                _by_three(module, observe, stack)
        yield


def _by_method(module: nn.Module, observe: Observe, stack: ExitStack) -> None:
    original: Any = module._attn

    def attend(
        query: Tensor, key: Tensor, value: Tensor, *rest: object, **more: object
    ) -> object:
        for part, tensor in zip(HEADS, (query, key, value), strict=True):
            observe(module, part, tensor)
        return original(query, key, value, *rest, **more)

    module.__dict__["_attn"] = attend  # hides the method of the class until it is removed
    stack.callback(module.__dict__.pop, "_attn")


def _by_split(module: nn.Module, observe: Observe, stack: ExitStack) -> None:
    rotary: dict[str, Any] = {}

    def entry(_module: nn.Module, _inputs: object, keywords: dict[str, Any]) -> None:
        rotary.update({name: keywords.get(name) for name in ("alibi", "position_embeddings")})

    def hook(_module: nn.Module, _inputs: object, output: Tensor) -> None:
        split: Any = _splitter(module)
        heads = _rotate(module, split(module, output), rotary)
        for part, tensor in zip(HEADS, heads, strict=True):
            observe(module, part, tensor)

    projection: Any = module.query_key_value
    stack.callback(module.register_forward_pre_hook(entry, with_kwargs=True).remove)
    stack.callback(projection.register_forward_hook(hook).remove)


def _splitter(module: nn.Module) -> Callable[[Any, Tensor], tuple[Tensor, ...]] | None:
    if hasattr(module, "_reshape"):  # bloom: (batch, heads, positions, width)
        return lambda bloom, fused: bloom._reshape(fused)
    if hasattr(module, "_split_heads") and hasattr(module, "new_decoder_architecture"):
        return _falcon
    return None


def _falcon(module: Any, fused: Tensor) -> tuple[Tensor, ...]:
    """Split as falcon does, but with each key once where it is shared by several queries."""
    if module.new_decoder_architecture:
        batch, positions, _ = fused.shape
        group = module.num_heads // module.num_kv_heads + 2
        each = fused.view(batch, positions, -1, group, module.head_dim)
        split = each[..., :-2, :].flatten(2, 3), each[..., -2, :], each[..., -1, :]
    else:
        split = module._split_heads(fused)
    return tuple(tensor.transpose(1, 2) for tensor in split)


def _rotate(
    module: nn.Module, heads: tuple[Tensor, Tensor, Tensor], rotary: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """Turn queries and keys by the rotary position that the module was called with."""
    query, key, value = heads
    home = sys.modules[type(module).__module__]
    turn = getattr(home, "apply_rotary_pos_emb", None)
    if turn is not None and rotary.get("alibi") is None and rotary.get("position_embeddings"):
        query, key = turn(query, key, *rotary["position_embeddings"])
    return query, key, value


def _by_three(module: nn.Module, observe: Observe, stack: ExitStack) -> None:
    for part, name in zip(HEADS, _triple(module) or (), strict=True):
        heads = _count(module, _HEADS if part == "q" else _KEY_HEADS)

        def hook(
            _module: nn.Module,
            _inputs: object,
            output: Tensor,
            part: str = part,
            heads: int = heads,
        ) -> None:
            observe(module, part, output.unflatten(-1, (heads, -1)).transpose(1, 2))

        stack.callback(module.get_submodule(name).register_forward_hook(hook).remove)


def _triple(module: nn.Module) -> tuple[str, str, str] | None:
    names = {name for name, child in module.named_children() if isinstance(child, nn.Linear)}
    return next((triple for triple in _TRIPLES if names.issuperset(triple)), None)


def _count(module: nn.Module, attributes: tuple[str, ...]) -> int:
    counts = (getattr(module, name, None) for name in attributes)
    return next((count for count in counts if isinstance(count, int)), 0)


@dataclass(frozen=True, slots=True)
class AttentionHead:
    """One head of one layer: where it is observed, and how wide it is."""

    site: str
    module: str
    way: Way
    part: str  # q, k or v
    call: int
    number: int
    width: int


class HeadTrace:
    """Records every head of self-attention during the pass that a Trace records."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._found: dict[tuple[str, int, int], dict[Way, list[AttentionHead]]] = {}
        self._calls: Counter[tuple[Way, str, str]] = Counter()

    @contextmanager
    def recording(self) -> Generator[None]:
        """Record heads while the block runs, in both ways."""
        own = [
            module
            for module, name in self.trace.names.items()
            for stack in self.trace.stacks
            if name.startswith(f"{stack.path}.")
            and not CROSS.search(name.removeprefix(stack.path))
        ]
        with (
            observe_attention(self.trace.body, own, partial(self._record, "interface")),
            observe_projections(own, partial(self._record, "projection")),
        ):
            yield

    def heads(self) -> dict[str, AttentionHead]:
        """Return the heads by site; the interface has priority."""
        found = [
            head
            for _, ways in sorted(self._found.items())  # by stack, part and layer
            for head in ways.get("interface", ways.get("projection", []))
        ]
        return {head.site: head for head in found}

    def _record(self, way: Way, module: nn.Module, part: str, tensor: Tensor) -> None:
        name = self.trace.names[module]
        call = self._calls[way, name, part]
        self._calls[way, name, part] += 1
        place = self.trace.place(name)
        # keys of cross-attention, of a cache or of windows have another shape
        if place is None or (tensor.shape[0], tensor.shape[2]) != place.shape[:2]:
            return
        heads = [
            AttentionHead(
                site=str(Site(part, place.layer, number, stack=place.stack)),
                module=name,
                way=way,
                part=part,
                call=call,
                number=number,
                width=tensor.shape[3],
            )
            for number in range(tensor.shape[1])
        ]
        key = (place.stack, HEADS.index(part), place.layer)
        self._found.setdefault(key, {}).setdefault(way, heads)


@contextmanager
def hear_heads(
    body: nn.Module,
    heads: Iterable[AttentionHead],
    hear: Hear,
    calls: Calls,
    *,
    detach: bool = True,
) -> Generator[None]:
    """Call `hear` with (batch, positions, width) of every head while the block runs."""
    by_call: dict[tuple[Way, nn.Module, str, int], list[AttentionHead]] = {}
    modules: dict[Way, dict[nn.Module, None]] = {"interface": {}, "projection": {}}
    for head in heads:
        module = body.get_submodule(head.module)
        by_call.setdefault((head.way, module, head.part, head.call), []).append(head)
        modules[head.way][module] = None

    def observe(way: Way, module: nn.Module, part: str, tensor: Tensor) -> None:
        call = calls.number((way, module, part))
        for head in by_call.get((way, module, part, call), ()):
            hear(head.site, (tensor.detach() if detach else tensor)[:, head.number])

    with ExitStack() as stack:
        if through := modules["interface"]:
            stack.enter_context(observe_attention(body, through, partial(observe, "interface")))
        stack.enter_context(
            observe_projections(modules["projection"], partial(observe, "projection"))
        )
        yield
