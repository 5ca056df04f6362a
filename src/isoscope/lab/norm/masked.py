"""A norm with one dimension zeroed, for as long as a block of code runs; weights untouched."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn

from isoscope.capture.norm import is_norm
from isoscope.capture.stacks import find_stacks
from isoscope.errors import ConfigError
from isoscope.lab.norm.final_norm import no_final_norm
from isoscope.registry import unknown
from isoscope.study.model import ModelSites

FINAL = "final"


@contextmanager
def masked(body: nn.Module, norms: Sequence[str], dimension: int) -> Generator[None]:
    """Let norms say zero in one dimension: the same as a gain and a bias of zero there.

    Done by hooks that are removed however the block ends. No parameter is written, not even
    for a moment, so there is nothing to be put back.
    """

    def hook(_module: nn.Module, _inputs: Any, said: Any) -> Any:
        assert isinstance(said, Tensor)
        changed = said.clone()
        changed[..., dimension] = 0
        return changed

    with ExitStack() as stack:
        for name in norms:
            handle = body.get_submodule(name).register_forward_hook(hook)
            stack.callback(handle.remove)
        yield


def chosen_norms(subject: ModelSites, norms: str | int | Sequence[str]) -> list[str]:
    """Return names of norms: "final", those of the last so many blocks, or as they are named.

    The norms of a block are those as wide as the stream, so not those of queries and keys.
    """
    body = subject.sites.body
    if isinstance(norms, bool):
        raise TypeError("expected norms by name, or a number of blocks, got a bool")
    if isinstance(norms, int):
        return _of_last_blocks(subject, norms)
    if norms == FINAL:
        tap = subject.sites.taps.get(subject.site("norm", "in"))
        if tap is None:
            raise no_final_norm(subject.loaded.name)
        return [tap.module]
    known = [name for name, module in body.named_modules() if is_norm(module)]
    wanted = [norms] if isinstance(norms, str) else list(norms)
    for name in wanted:
        if name not in known:
            raise unknown("norm", name, known)
    return wanted


def _of_last_blocks(subject: ModelSites, count: int) -> list[str]:
    body = subject.sites.body
    stack = next(each for each in find_stacks(body) if each.name == subject.last)
    if not 1 <= count <= len(stack.blocks):
        raise ConfigError(
            f"expected 1 to {len(stack.blocks)} blocks, got {count}",
            hint="give as many blocks as the model has, or fewer",
            slug="number-range",
        )
    width = subject.sites.widths[subject.site("embed")]
    return [
        f"{block}.{name}"
        for block in stack.blocks[-count:]
        for name, module in body.get_submodule(block).named_modules()
        if is_norm(module) and _width(module) in (None, width)
    ]


def _width(norm: nn.Module) -> int | None:
    weight = getattr(norm, "weight", None)
    return len(weight) if isinstance(weight, Tensor) else None
