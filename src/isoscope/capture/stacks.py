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
        sides = {side: _of_side(lists, side) for side in SIDES}
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


def _of_side(lists: list[str], side: str) -> list[str]:
    return [name for name in lists if side in name.split(".")]


def _largest(model: nn.Module, paths: list[str]) -> str:
    """Return the list that is the model: with attention, rather than convolutions before it."""

    def size(path: str) -> tuple[bool, int]:
        module = model.get_submodule(path)
        return _attends(module), sum(p.numel() for p in module.parameters())

    return max(paths, key=size)


def _attends(module: nn.Module) -> bool:
    return any("attention" in type(each).__name__.lower() for each in module.modules())


def _stack(model: nn.Module, path: str, name: str) -> Stack:
    module = model.get_submodule(path)
    first = next(iter(module.children()))
    inner = [part for part, child in first.named_children() if isinstance(child, nn.ModuleList)]
    names = [f"{path}.{number}" for number, _ in enumerate(module.children())]
    if len(list(first.children())) == 1 and len(inner) == 1 and not _is_block(first, inner[0]):
        # a group of layers that are called again and again: ALBERT
        names = [
            f"{group}.{inner[0]}.{number}"
            for group in names
            for number in range(
                len(list(model.get_submodule(f"{group}.{inner[0]}").children()))
            )
        ]
    return Stack(name, path, tuple(names), _is_spatial(first))


def _is_block(block: nn.Module, inner: str) -> bool:
    """Whether a list inside a block holds its parts (T5), not whole layers (ALBERT)."""
    kinds = {type(each) for each in block.get_submodule(inner).children()}
    return len(kinds) > 1


def _is_spatial(block: nn.Module) -> bool:
    convolves = any(isinstance(module, nn.Conv2d) for module in block.modules())
    return convolves and not _attends(block)


def no_blocks(model: nn.Module) -> SourceError:
    """Return the error for a model in which no blocks were found, or none that ran."""
    lists = candidates(model)
    found = f"lists that are never called as such: {', '.join(lists)}" if lists else "none"
    return SourceError(
        f"expected a list of blocks in {type(model).__name__}, got {found}",
        hint=f"name modules to listen to; it has: {_outline(model)}",
        slug="no-blocks",
    )


def _outline(model: nn.Module) -> str:
    names = [f"{name} ({type(child).__name__})" for name, child in model.named_children()]
    return ", ".join(names[:8]) or "no modules"
