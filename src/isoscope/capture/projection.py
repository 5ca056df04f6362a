"""Queries, keys and values of attention that does not go through AttentionInterface.

Three ways, the first that fits: the method `_attn` that is called with them (gptj, gpt_neo,
codegen); one projection that the module itself splits (falcon, bloom), turned by its rotary
position where it has one; three projections (canine, deberta), split into heads.
"""

import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from isoscope.capture.attention import PARTS, Seen

Way = Callable[[nn.Module, Seen, ExitStack], None]

_TRIPLES = (
    ("query", "key", "value"),
    ("query_proj", "key_proj", "value_proj"),
    ("q_proj", "k_proj", "v_proj"),
    ("q_lin", "k_lin", "v_lin"),
    ("q", "k", "v"),
)
_HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head")
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads", *_HEADS)


def projects(module: nn.Module) -> bool:
    """Whether queries, keys and values of an attention module can be heard here."""
    return _way(module) is not None


@contextmanager
def overhearing(modules: list[nn.Module], seen: Seen) -> Generator[None]:
    """Call `seen` for queries, keys and values of these modules while the block runs."""
    with ExitStack() as stack:
        for module in modules:
            way = _way(module)
            if way is not None:
                way(module, seen, stack)
        yield


def _way(module: nn.Module) -> Way | None:
    if callable(getattr(module, "_attn", None)):
        return _by_method
    if hasattr(module, "query_key_value") and _splitter(module) is not None:
        return _by_split
    if _triple(module) is not None and _count(module, _HEADS):
        return _by_three
    return None


def _by_method(module: nn.Module, seen: Seen, stack: ExitStack) -> None:
    original: Any = module._attn

    def attend(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **more: Any) -> Any:
        for part, tensor in zip(PARTS, (query, key, value), strict=True):
            seen(module, part, tensor)
        return original(query, key, value, *rest, **more)

    module.__dict__["_attn"] = attend  # hides the method of the class until it is removed
    stack.callback(module.__dict__.pop, "_attn")


def _by_split(module: nn.Module, seen: Seen, stack: ExitStack) -> None:
    rotary: dict[str, Any] = {}

    def entry(_module: nn.Module, _inputs: Any, keywords: dict[str, Any]) -> None:
        rotary.update({name: keywords.get(name) for name in ("alibi", "position_embeddings")})

    def hook(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        split: Any = _splitter(module)
        heads = _turned(module, split(module, output), rotary)
        for part, tensor in zip(PARTS, heads, strict=True):
            seen(module, part, tensor)

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


def _turned(
    module: nn.Module, heads: tuple[Tensor, Tensor, Tensor], rotary: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """Turn queries and keys by the rotary position that the module was called with."""
    query, key, value = heads
    home = sys.modules[type(module).__module__]
    turn = getattr(home, "apply_rotary_pos_emb", None)
    if turn is not None and rotary.get("alibi") is None and rotary.get("position_embeddings"):
        query, key = turn(query, key, *rotary["position_embeddings"])
    return query, key, value


def _by_three(module: nn.Module, seen: Seen, stack: ExitStack) -> None:
    for part, name in zip(PARTS, _triple(module) or (), strict=True):
        heads = _count(module, _HEADS if part == "q" else _KEY_HEADS)
        hook = _split_hook(module, part, heads, seen)
        stack.callback(module.get_submodule(name).register_forward_hook(hook).remove)


def _split_hook(
    module: nn.Module, part: str, heads: int, seen: Seen
) -> Callable[[nn.Module, Any, Tensor], None]:
    def hook(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
        seen(module, part, output.unflatten(-1, (heads, -1)).transpose(1, 2))

    return hook


def _triple(module: nn.Module) -> tuple[str, str, str] | None:
    names = {name for name, child in module.named_children() if isinstance(child, nn.Linear)}
    return next((triple for triple in _TRIPLES if names.issuperset(triple)), None)


def _count(module: nn.Module, attributes: tuple[str, ...]) -> int:
    counts = (getattr(module, name, None) for name in attributes)
    return next((count for count in counts if isinstance(count, int)), 0)
