"""A record of one small forward pass: which modules ran, in which block, on what."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from isoscope.capture.stacks import Stack
from isoscope.capture.tap import first_tensor, input_tensor


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
                handle = self.body.get_submodule(name).register_forward_pre_hook(
                    partial(self._enter, name, stack.name), with_kwargs=True
                )
                handles.callback(handle.remove)
            for name in dict.fromkeys((*modules, *blocks)):
                handle = self.body.get_submodule(name).register_forward_hook(
                    partial(self._leave, name), with_kwargs=True
                )
                handles.callback(handle.remove)
            run()
        return self.events

    def _enter(
        self,
        name: str,
        stack: str,
        _module: nn.Module,
        inputs: tuple[object, ...],
        keywords: Mapping[str, object],
    ) -> None:
        """Note that a block begins to run: a hook."""
        tensor = input_tensor(inputs, keywords)
        shape = () if tensor is None else tuple(tensor.shape)
        self._places[stack] = BlockRun(stack, self._layers[stack], name, shape)
        self._layers[stack] += 1

    def _leave(
        self,
        name: str,
        _module: nn.Module,
        inputs: tuple[object, ...],
        keywords: Mapping[str, object],
        output: object,
    ) -> None:
        """Note that a module has run: a hook."""
        tensors = input_tensor(inputs, keywords), first_tensor(output)
        # copies, because a model may write into its own tensors
        kept = (None if t is None else t.detach().clone() for t in tensors)
        self.events.append(Event(name, self._calls[name], self.place(name), *kept))
        self._calls[name] += 1
