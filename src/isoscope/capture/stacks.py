"""Finding the blocks of a model in its module tree, whatever the model is called."""

from dataclasses import dataclass

from torch import nn

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
