"""Taps: hooks that hear what a module says and can never answer back."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from torch import Tensor, nn

Hear = Callable[[str, Tensor], None]


@dataclass(frozen=True, slots=True)
class Tap:
    """A module to listen to, and the site that what it hears or says belongs to.

    A module that runs several times in a forward pass, such as the one block of ALBERT,
    has a tap for each of its calls.
    """

    site: str
    module: str  # dotted name, as in model.named_modules()
    side: Literal["input", "output"] = "output"
    call: int | None = 0  # which call within a forward pass is meant; None: every one
    through: Callable[[nn.Module, Tensor], Tensor] | None = None  # what becomes of it first
    within: str | None = None  # the block whose (batch, positions) a flattened tensor has


class Calls:
    """How often each tap has been reached in the forward pass under way."""

    def __init__(self) -> None:
        self._counts: dict[Any, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}

    def restart(self) -> None:
        """Begin a new forward pass."""
        self._counts.clear()
        self._shapes.clear()

    def number(self, key: Any) -> int:
        """Return the number of this call, from 0."""
        number = self._counts.get(key, 0)
        self._counts[key] = number + 1
        return number

    def enter(self, block: str, shape: tuple[int, ...]) -> None:
        """Remember the shape of the stream as it enters a block."""
        self._shapes[block] = shape

    def unfolded(self, tensor: Tensor, block: str | None) -> Tensor:
        """Return a tensor of all tokens in a row as (batch, positions, width)."""
        shape = self._shapes.get(block or "", ())
        if len(shape) == 3 and tensor.ndim == 2:
            return tensor.view(*shape[:2], tensor.shape[-1])
        return tensor


@contextmanager
def listening(
    model: nn.Module,
    taps: Sequence[Tap],
    hear: Hear,
    calls: Calls | None = None,
    *,
    detach: bool = True,
) -> Generator[Calls]:
    """Call `hear(site, tensor)` for every tap while the block runs, then let go.

    The hooks return nothing, so they cannot change the forward pass, and they are
    removed however the block ends. Weights are never folded, centred or copied: the
    numbers are those of the model as it was shipped. Say `restart()` before each pass.
    A tensor is the model's own, good until `hear` returns: falcon goes on to add to it.
    It is detached, unless a loss is to be made of it (`detach=False`).
    """
    calls = Calls() if calls is None else calls
    with ExitStack() as stack:
        for block in dict.fromkeys(tap.within for tap in taps if tap.within):
            hook = _entry_hook(block, calls)
            handle = model.get_submodule(block).register_forward_pre_hook(
                hook, with_kwargs=True
            )
            stack.callback(handle.remove)
        for number, tap in enumerate(taps):
            module = model.get_submodule(tap.module)
            said = _said(tap, number, hear, calls, detach)
            if tap.side == "input":
                handle = module.register_forward_pre_hook(_input_hook(said), with_kwargs=True)
            else:
                handle = module.register_forward_hook(_output_hook(said))
            stack.callback(handle.remove)
        yield calls


def _said(
    tap: Tap, key: int, hear: Hear, calls: Calls, detach: bool
) -> Callable[[nn.Module, Tensor | None], None]:
    def said(module: nn.Module, tensor: Tensor | None) -> None:
        if tensor is None or tap.call not in (None, calls.number(key)):
            return
        tensor = calls.unfolded(tensor.detach() if detach else tensor, tap.within)
        hear(tap.site, tensor if tap.through is None else tap.through(module, tensor))

    return said


def _output_hook(
    said: Callable[[nn.Module, Tensor | None], None],
) -> Callable[[nn.Module, Any, Any], None]:
    def hook(module: nn.Module, _inputs: Any, output: Any) -> None:
        said(module, first_tensor(output))

    return hook


def _input_hook(
    said: Callable[[nn.Module, Tensor | None], None],
) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
    def hook(module: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        said(module, given_tensor(inputs, keywords))

    return hook


def _entry_hook(
    block: str, calls: Calls
) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]:
    def hook(_module: nn.Module, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        tensor = given_tensor(inputs, keywords)
        if tensor is not None:
            calls.enter(block, tuple(tensor.shape))

    return hook


def given_tensor(inputs: tuple[Any, ...], keywords: Mapping[str, Any]) -> Tensor | None:
    """Return the hidden states a module is called with, given by place or by name."""
    named = keywords.get("hidden_states")
    return first_tensor((*inputs, named, *keywords.values()))


def first_tensor(output: Any) -> Tensor | None:
    """Return the tensor a module gives: itself, or the first of a tuple or of a record."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(output, tuple | list):
        return next((each for each in _floating(output)), None)
    return None


def _floating(values: Iterable[Any]) -> Iterable[Tensor]:
    return (each for each in values if isinstance(each, Tensor) and each.is_floating_point())


def spatial(_module: nn.Module, tensor: Tensor) -> Tensor:
    """Return one row per spatial position: (batch, channels, height, width) turned."""
    return tensor.flatten(2).transpose(1, 2)


def by_rows(module: nn.Module, tensor: Tensor) -> Tensor:
    """Return any tensor as (batch, positions, width): one vector, a sequence, or a map."""
    if tensor.ndim > 3:
        return spatial(module, tensor)
    return tensor[:, None] if tensor.ndim == 2 else tensor
