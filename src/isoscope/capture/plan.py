"""The plan of a model: which sites it has, and where to listen for each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.capture.tap import Tap, first_tensor
from isoscope.capture.tree import Stack, stacks


@dataclass(frozen=True, slots=True)
class FinalNorm:
    """The norm a stack ends with, and whether it is the last thing its last block does."""

    module: str
    inside: bool  # post-norm models: the block's output is the norm's


@dataclass(frozen=True)
class Plan:
    """Stacks, their final norms, and the taps that hear them."""

    stacks: tuple[Stack, ...]
    norms: dict[str, FinalNorm]  # by prefix of the stack
    widths: dict[str, int] = field(default_factory=dict[str, int])  # of sites, once heard

    def taps(self, families: frozenset[str]) -> list[Tap]:
        """Return the taps for families of sites, such as resid, embed and norm."""
        found: list[Tap] = []
        for stack in self.stacks:
            found += self._of_stack(stack, families)
        return found

    def _of_stack(self, stack: Stack, families: frozenset[str]) -> list[Tap]:
        found: list[Tap] = []
        if "embed" in families:
            found.append(Tap(f"{stack.prefix}embed", stack.blocks[0], "input"))
        if "resid" in families:
            family = "stage." if stack.spatial else "resid."
            found += [Tap(f"{stack.prefix}{family}", block) for block in stack.blocks]
        norm = self.norms.get(stack.prefix)
        if "norm" in families and norm is not None:
            found.append(Tap(f"{stack.prefix}norm.in", norm.module, "input"))
            found.append(Tap(f"{stack.prefix}norm.out", norm.module, "output"))
        return found


def planned(model: nn.Module, run: Callable[[], Any]) -> Plan:
    """Return the plan of a model, found by watching one small forward pass.

    The module tree tells the blocks; which norm comes after the last of them is told by
    the order of calls, because names and places differ (wav2vec2 has a norm beside its
    blocks that comes before them).
    """
    found = tuple(stacks(model))
    norms = {stack.prefix: norm for stack in found if (norm := _final_norm(model, stack, run))}
    return Plan(found, norms)


def _final_norm(model: nn.Module, stack: Stack, run: Callable[[], Any]) -> FinalNorm | None:
    last, names = stack.blocks[-1], {module: name for name, module in model.named_modules()}
    heard: list[tuple[str, Tensor | None, Tensor | None]] = []
    within = {f"{stack.path}."}

    def hook(module: nn.Module, inputs: Any, output: Any) -> None:
        heard.append((names[module], first_tensor(inputs), first_tensor(output)))

    watched = [
        module
        for name, module in model.named_modules()
        if name == last
        or (is_norm(module) and (name.startswith(f"{last}.") or not _inside(name, within)))
    ]
    handles = [module.register_forward_hook(hook) for module in watched]
    try:
        with torch.no_grad():
            run()
    finally:
        for handle in handles:
            handle.remove()
    return _chosen(heard, last)


def _chosen(
    heard: list[tuple[str, Tensor | None, Tensor | None]], last: str
) -> FinalNorm | None:
    ends = [i for i, (name, _, _) in enumerate(heard) if name == last]
    if not ends:
        return None
    end = ends[-1]
    output = heard[end][2]
    for name, given, _ in heard[end + 1 :]:
        if given is not None and output is not None and given.shape == output.shape:
            return FinalNorm(name, inside=False)
    for name, _, said in reversed(heard[:end]):
        if said is not None and output is not None and said.data_ptr() == output.data_ptr():
            return FinalNorm(name, inside=True)
    return None


def _inside(name: str, paths: set[str]) -> bool:
    return any(name.startswith(path) for path in paths)


def is_norm(module: nn.Module) -> bool:
    """Whether a module normalises hidden states: LayerNorm, RMSNorm and their kin."""
    kind = type(module).__name__.lower()
    return "norm" in kind and "weight" not in kind and not list(module.children())


def normalised(norm: nn.Module, given: Tensor) -> Tensor:
    """Return what a norm makes of its input before gain and bias.

    LayerNorm centres and divides by the standard deviation, RMSNorm by the root of the
    mean square.
    """
    given = given.float()
    eps = float(getattr(norm, "eps", getattr(norm, "variance_epsilon", 1e-6)))
    if isinstance(norm, nn.LayerNorm) or getattr(norm, "bias", None) is not None:
        given = given - given.mean(dim=-1, keepdim=True)
    return given * torch.rsqrt(given.square().mean(dim=-1, keepdim=True) + eps)
