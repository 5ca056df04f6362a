"""The blocks of a model, found in its module tree, and a record of how one small pass runs.

Which modules ran, in which block, on what: names and places differ from model to model.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

import torch
from torch import Tensor, nn

from isoscope.capture.tap import first_tensor, input_tensor
from isoscope.dataclass import dataclass
from isoscope.errors import SourceError
from isoscope.site import DECODER, ENCODER

SIDES = {"encoder": ENCODER, "decoder": DECODER}


@dataclass(frozen=True, slots=True)
class Stack:
    """The blocks that pass a stream of hidden states on to each other."""

    name: str  # in its sites: "enc" and "dec" in encoder-decoders, else ""
    path: str  # dotted name of the list
    blocks: tuple[str, ...]  # dotted names, in order
    spatial: bool  # stages of a convolutional network


def find_stacks(model: nn.Module) -> list[Stack]:
    """Return the stacks of a model: one, or an encoder's and a decoder's."""
    lists = candidates(model)
    if not lists:
        raise no_blocks(model)
    config = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        sides = {side: [name for name in lists if side in name.split(".")] for side in SIDES}
        if all(sides.values()):
            return [
                _stack(model, _largest(model, paths), SIDES[s]) for s, paths in sides.items()
            ]
    return [_stack(model, _largest(model, lists), "")]


def candidates(model: nn.Module) -> list[str]:
    """Return the outermost lists whose entries are all of one class."""
    lists = [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList)
        and len(module)
        and len({type(each) for each in module}) == 1
        and "parametrizations" not in name
    ]
    return [n for n in lists if not any(n.startswith(f"{other}.") for other in lists)]


def _largest(model: nn.Module, paths: list[str]) -> str:
    """Return the list that is the model: with attention, rather than convolutions before it."""

    def size(path: str) -> tuple[bool, int]:
        module = model.get_submodule(path)
        return _attends(module), sum(p.numel() for p in module.parameters())

    return max(paths, key=size)


def _attends(module: nn.Module) -> bool:
    return any("attention" in type(each).__name__.lower() for each in module.modules())


def _stack(model: nn.Module, path: str, name: str) -> Stack:
    blocks = list(model.get_submodule(path).children())
    names = [f"{path}.{number}" for number in range(len(blocks))]
    convolves = any(isinstance(module, nn.Conv2d) for module in blocks[0].modules())
    spatial = convolves and not _attends(blocks[0])
    children = list(blocks[0].named_children())
    if len(children) == 1 and isinstance(children[0][1], nn.ModuleList):
        inner, layers = children[0]
        # a group of layers that are called again and again (ALBERT), not the parts of a block
        if len({type(each) for each in layers.children()}) <= 1:
            names = [
                f"{group}.{inner}.{number}"
                for group in names
                for number, _ in enumerate(model.get_submodule(f"{group}.{inner}").children())
            ]
    return Stack(name, path, tuple(names), spatial)


def no_blocks(model: nn.Module) -> SourceError:
    """Return the error for a model in which no blocks were found, or none that ran."""
    lists = candidates(model)
    found = f"lists that are never called as such: {', '.join(lists)}" if lists else "none"
    names = [f"{name} ({type(child).__name__})" for name, child in model.named_children()]
    return SourceError(
        f"expected a list of blocks in {type(model).__name__}, got {found}",
        hint=f"name modules to listen to; it has: {', '.join(names[:8]) or 'no modules'}",
        slug="no-blocks",
    )


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
