"""A record of one small forward pass: which modules ran, in which block, on what."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isoscope.capture.stacks import Stack
from isoscope.capture.tap import PreHook, first_tensor, input_tensor


@dataclass(frozen=True, slots=True)
class BlockRun:
    """A run of a block: layers are numbered in the order in which they run."""

    stack: str  # its name
    layer: int
    block: str  # dotted name
    shape: tuple[int, ...]  # of the stream that enters it


@dataclass(frozen=True, slots=True)
class Event:
    """One call of a module."""

    module: str
    call: int  # of this module, within the pass
    place: BlockRun | None  # the run of a block it happened in; a block's own is its own
    received: Tensor | None
    returned: Tensor | None


class Trace:
    """A record of one forward pass; `place` is the run in which a module is being called."""

    def __init__(self, body: nn.Module, stacks: Sequence[Stack]) -> None:
        self.body = body
        self.stacks = stacks
        self.events: list[Event] = []
        self.names = {module: name for name, module in body.named_modules()}
        self._calls: Counter[str] = Counter()
        self._layers: Counter[str] = Counter()
        self._places: dict[str, BlockRun] = {}

    def place(self, name: str) -> BlockRun | None:
        """Return the run of a block within which a module of this name is being called."""
        for stack in self.stacks:
            if name.startswith(f"{stack.path}."):
                return self._places.get(stack.name)
        return None

    def run(self, modules: Collection[str], run: Callable[[], object]) -> list[Event]:
        """Run once, without gradients, and return the calls of blocks and of modules."""
        blocks = {name: stack for stack in self.stacks for name in stack.blocks}
        with ExitStack() as handles, torch.no_grad():
            for name, stack in blocks.items():
                hook = self._entry(name, stack)
                handle = self.body.get_submodule(name).register_forward_pre_hook(
                    hook, with_kwargs=True
                )
                handles.callback(handle.remove)
            for name in dict.fromkeys((*modules, *blocks)):
                handle = self.body.get_submodule(name).register_forward_hook(
                    self._end(name), with_kwargs=True
                )
                handles.callback(handle.remove)
            run()
        return self.events

    def _entry(self, name: str, stack: Stack) -> PreHook:
        def hook(
            _module: nn.Module, inputs: tuple[object, ...], keywords: Mapping[str, object]
        ) -> None:
            tensor = input_tensor(inputs, keywords)
            shape = () if tensor is None else tuple(tensor.shape)
            layer = self._layers[stack.name]
            self._layers[stack.name] += 1
            self._places[stack.name] = BlockRun(stack.name, layer, name, shape)

        return hook

    def _end(self, name: str) -> Callable[..., None]:
        def hook(
            _module: nn.Module,
            inputs: tuple[object, ...],
            keywords: Mapping[str, object],
            output: object,
        ) -> None:
            call = self._calls[name]
            self._calls[name] += 1
            tensors = input_tensor(inputs, keywords), first_tensor(output)
            # copies, because a model may write into its own tensors
            kept = (None if t is None else t.detach().clone() for t in tensors)
            self.events.append(Event(name, call, self.place(name), *kept))

        return hook
