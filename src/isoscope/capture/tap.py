"""Taps: hooks that report what a module receives or returns and never change it."""

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import local
from typing import Literal

from torch import Tensor, nn
from torch.backends import mha
from torch.utils.hooks import RemovableHandle

from isoscope.dataclass import dataclass
from isoscope.errors import SourceError
from isoscope.registry import unknown

Hear = Callable[[str, Tensor], None]
Through = Callable[[nn.Module, Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Tap:
    """A module to listen to, and the site that its input or output belongs to.

    A module that runs several times in a forward pass, such as the one block of ALBERT,
    has a tap for each of its calls.
    """

    site: str
    module: str  # dotted name, as in model.named_modules()
    side: Literal["input", "output"] = "output"
    call: int | None = 0  # which call within a forward pass is meant; None: every one
    through: Through | None = None  # applied before it is reported
    within: str | None = None  # the block whose (batch, positions) a flattened tensor has


class Calls(local):
    """How often each tap has been reached in the forward pass under way, of each thread."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._shapes: dict[str, tuple[int, ...]] = {}

    def restart(self) -> None:
        """Begin a new forward pass."""
        self._counts.clear()
        self._shapes.clear()

    def number(self, key: Hashable) -> int:
        """Return the number of this call, from 0."""
        self._counts[key] += 1
        return self._counts[key] - 1

    def enter(
        self,
        block: str,
        _module: nn.Module,
        inputs: tuple[object, ...],
        keywords: Mapping[str, object],
    ) -> None:
        """Remember the shape of the stream as it enters a block: a hook."""
        tensor = input_tensor(inputs, keywords)
        if tensor is not None:
            self._shapes[block] = tuple(tensor.shape)

    def unfold(self, tensor: Tensor, block: str | None) -> Tensor:
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
    numbers are those of the model as it was shipped. Call `restart()` before each pass.
    A tensor is the model's own, good until `hear` returns: falcon adds to it later.
    It is detached, unless a loss is to be made of it (`detach=False`).
    """
    calls = Calls() if calls is None else calls
    with ExitStack() as stack:
        stack.enter_context(FastPath.disabled())
        for block in dict.fromkeys(tap.within for tap in taps if tap.within):
            handle = model.get_submodule(block).register_forward_pre_hook(
                partial(calls.enter, block), with_kwargs=True
            )
            stack.callback(handle.remove)
        for number, tap in enumerate(taps):
            module = model.get_submodule(tap.module)
            stack.callback(_attach(module, tap, number, hear, calls, detach=detach).remove)
        yield calls


class FastPath:
    """PyTorch's fast path for the layers of nn.TransformerEncoder, off while taps listen.

    It is one fused call: it skips the modules inside a layer, and passes documents of
    different lengths on as nested tensors, without their padding.
    """

    listeners = 0  # in this process; the switch is one for all
    before = True

    @classmethod
    @contextmanager
    def disabled(cls) -> Generator[None]:
        """Switch it off until the last of several such blocks ends."""
        if not cls.listeners:
            cls.before = mha.get_fastpath_enabled()
            mha.set_fastpath_enabled(False)
        cls.listeners += 1
        try:
            yield
        finally:
            cls.listeners -= 1
            if not cls.listeners:
                mha.set_fastpath_enabled(cls.before)


def _attach(
    module: nn.Module, tap: Tap, key: int, hear: Hear, calls: Calls, *, detach: bool
) -> RemovableHandle:
    """Hook a tap to its module."""

    def report(tensor: Tensor | None) -> None:
        if tensor is None or tap.call not in (None, calls.number(key)):
            return
        tensor = calls.unfold(tensor.detach() if detach else tensor, tap.within)
        hear(tap.site, tensor if tap.through is None else tap.through(module, tensor))

    def before(
        _module: nn.Module, inputs: tuple[object, ...], keywords: Mapping[str, object]
    ) -> None:
        report(input_tensor(inputs, keywords))

    def after(_module: nn.Module, _inputs: object, output: object) -> None:
        report(first_tensor(output))

    if tap.side == "input":
        return module.register_forward_pre_hook(before, with_kwargs=True)
    return module.register_forward_hook(after)


def input_tensor(inputs: tuple[object, ...], keywords: Mapping[str, object]) -> Tensor | None:
    """Return the hidden states a module is called with, positional or by keyword."""
    named = keywords.get("hidden_states")
    return first_tensor((*inputs, named, *keywords.values()))


def first_tensor(output: object) -> Tensor | None:
    """Return the tensor a module returns: itself, or the first of a tuple or of a record."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, dict):
        output = tuple(output.values())
    if isinstance(output, tuple | list):
        tensors = (each for each in output if isinstance(each, Tensor))
        return next((each for each in tensors if each.is_floating_point()), None)
    return None


def spatial(_module: nn.Module, tensor: Tensor) -> Tensor:
    """Return one row per spatial position: (batch, channels, height, width) turned."""
    return tensor.flatten(2).transpose(1, 2)


def by_rows(module: nn.Module, tensor: Tensor) -> Tensor:
    """Return any tensor as (batch, positions, width): one vector, a sequence, or a map."""
    if tensor.is_nested:
        raise SourceError(
            f"expected a padded tensor from {type(module).__name__}, got a nested one",
            hint="pass padded batches, each with a boolean mask of its positions",
            slug="positions-unknown",
        )
    if tensor.ndim > 3:
        return spatial(module, tensor)
    return tensor[:, None] if tensor.ndim == 2 else tensor


def named_taps(model: nn.Module, modules: Mapping[str, str] | Sequence[str]) -> list[Tap]:
    """Return taps on the outputs of modules: names, or sites with names.

    Every call is reported. One vector, a sequence of vectors or a map of them per example
    will do; they arrive as (batch, positions, width).
    """
    sites = modules if isinstance(modules, Mapping) else {name: name for name in modules}
    known = [name for name, _ in model.named_modules() if name]
    for name in sites.values():
        if name not in known:
            raise unknown("module", name, known)
    return [Tap(site, name, call=None, through=by_rows) for site, name in sites.items()]
