"""Taps: hooks that hear what a module says and can never answer back."""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

Hear = Callable[[str, Tensor], None]


@dataclass(frozen=True, slots=True)
class Tap:
    """A module to listen to, and the site that what it hears or says belongs to.

    A site that ends in a dot gets the number of the call within a forward pass: blocks are
    numbered in the order in which they run, also those that run several times.
    """

    site: str
    module: str  # dotted name, as in model.named_modules()
    side: Literal["input", "output"] = "output"


@contextmanager
def listening(model: nn.Module, taps: Sequence[Tap], hear: Hear) -> Generator["Calls"]:
    """Call `hear(site, tensor)` for every tap while the block runs, then let go.

    The hooks return nothing, so they cannot change the forward pass, and they are
    removed however the block ends. Weights are never folded, centred or copied: the
    numbers are those of the model as it was shipped.
    """
    calls = Calls()
    with ExitStack() as stack:
        for tap in taps:
            module = model.get_submodule(tap.module)
            if tap.side == "input":
                hook = _input_hook(tap, hear, calls)
                handle = module.register_forward_pre_hook(hook, with_kwargs=True)
            else:
                handle = module.register_forward_hook(_output_hook(tap, hear, calls))
            stack.callback(handle.remove)
        yield calls


class Calls:
    """How often each numbered site has been heard in the forward pass under way."""

    def __init__(self) -> None:
        self.heard: dict[str, int] = {}

    def restart(self) -> None:
        """Begin a new forward pass."""
        self.heard.clear()

    def named(self, site: str) -> str:
        """Return the site, numbered if it wants a number."""
        number = self.heard.get(site, 0)
        self.heard[site] = number + 1
        return f"{site}{number}" if site.endswith(".") else site


def _output_hook(tap: Tap, hear: Hear, calls: Calls) -> Callable[[nn.Module, Any, Any], None]:
    def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
        tensor = first_tensor(output)
        if tensor is not None:
            hear(calls.named(tap.site), tensor.detach())

    return hook


def _input_hook(
    tap: Tap, hear: Hear, calls: Calls
) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
    def hook(_module: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        tensor = first_tensor(inputs)
        if tensor is None:
            tensor = first_tensor(keywords.get("hidden_states"))
        if tensor is not None:
            site = calls.named(tap.site)
            if site.endswith(".") or calls.heard[tap.site] == 1:  # the first call is the input
                hear(site, tensor.detach())

    return hook


def first_tensor(output: Any) -> Tensor | None:
    """Return the tensor a module gives: itself, or the first of a tuple or of a record."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(output, tuple | list):
        return next((each for each in output if isinstance(each, Tensor)), None)
    return None
