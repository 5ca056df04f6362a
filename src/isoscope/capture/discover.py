"""The plan of a model: a tap for every site that a module says or hears as a whole."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from isoscope.capture.families import parts
from isoscope.capture.norm import centring, is_norm, normalised
from isoscope.capture.tap import Tap, spatial
from isoscope.capture.tree import Stack, no_blocks
from isoscope.capture.watch import Event, Place, Watch
from isoscope.site import Site


def planned(watch: Watch, run: Callable[[], Any]) -> dict[str, Tap]:
    """Return the taps by site, found by watching one small forward pass.

    The module tree tells the blocks and their parts; which norm comes after the last of
    them is told by what it is given, because names and places differ (wav2vec2 has a norm
    beside its blocks that comes before them).
    """
    of = {stack.name: _parts_of(watch.body, stack) for stack in watch.stacks}
    listened = {name for found in of.values() for family in found.values() for name in family}
    events = watch.run(listened | _norms(watch.body, watch.stacks), run)
    taps: list[Tap] = []
    for stack in watch.stacks:
        taps += _stream(stack, events)
        for family, names in of[stack.name].items():
            taps += _parts(stack, family, names, events)
        taps += _final_norm(watch.body, stack, events)
    if not taps:
        raise no_blocks(watch.body)
    return {tap.site: tap for tap in taps}


def _parts_of(body: nn.Module, stack: Stack) -> dict[str, set[str]]:
    """Return the full names of attention and feed-forward parts of all blocks."""
    found: dict[str, set[str]] = {"attn": set(), "mlp": set()}
    for block in () if stack.spatial else stack.blocks:
        where = parts(body.get_submodule(block))
        for family, name in (("attn", where.attn), ("mlp", where.mlp)):
            if name is not None:
                found[family].add(f"{block}.{name}")
    return found


def _norms(body: nn.Module, stacks: Sequence[Stack]) -> set[str]:
    """Return the norms that a stack may end with: in its last block, or outside of all."""
    last = tuple(f"{stack.blocks[-1]}." for stack in stacks)
    paths = tuple(f"{stack.path}." for stack in stacks)
    return {
        name
        for name, module in body.named_modules()
        if is_norm(module) and (name.startswith(last) or not name.startswith(paths))
    }


def _runs(stack: Stack, events: Sequence[Event]) -> list[tuple[int, Event, Place]]:
    """Return the runs of the stack's blocks, with their place in the log."""
    return [
        (number, event, event.place)
        for number, event in enumerate(events)
        if event.module in stack.blocks
        and event.place is not None
        and event.place.stack == stack.name
    ]


def _stream(stack: Stack, events: Sequence[Event]) -> list[Tap]:
    runs = _runs(stack, events)
    family = "stage" if stack.spatial else "resid"
    first = [
        Tap(
            str(Site("embed", stack=stack.name)),
            event.module,
            "input",
            event.call,
            _turn(event.given),
        )
        for _, event, _ in runs[:1]
    ]
    return first + [
        Tap(
            str(Site(family, place.layer, stack=stack.name)),
            event.module,
            "output",
            event.call,
            _turn(event.said),
        )
        for _, event, place in runs
    ]


def _turn(tensor: Tensor | None) -> Callable[[nn.Module, Tensor], Tensor] | None:
    """Return what makes rows of a map: convolutional networks, and attention among them."""
    return spatial if tensor is not None and tensor.ndim == 4 else None


def _parts(stack: Stack, family: str, names: set[str], events: Sequence[Event]) -> list[Tap]:
    found: dict[str, Tap] = {}
    for event in events:
        place, said = event.place, event.said
        if event.module not in names or place is None or said is None:
            continue
        flat = is_flat(said, place)
        if flat or said.shape[:-1] == place.shape[:-1]:
            site = str(Site(family, place.layer, stack=stack.name))
            within = place.block if flat else None
            tap = Tap(site, event.module, "output", event.call, within=within)
            found.setdefault(site, tap)
    return list(found.values())


def is_flat(tensor: Tensor, place: Place) -> bool:
    """Whether a tensor has all tokens of the batch in one row, as in OPT's feed-forward."""
    shape = place.shape
    return tensor.ndim == 2 and len(shape) == 3 and len(tensor) == shape[0] * shape[1]


def _final_norm(body: nn.Module, stack: Stack, events: Sequence[Event]) -> list[Tap]:
    """Return the taps on the norm after the last block, or on the one that ends it."""
    runs = _runs(stack, events)
    if not runs or stack.spatial:
        return []
    end, last, place = runs[-1]
    after = [e for e in events[end + 1 :] if _same(e.given, last.said)]
    inside = [e for e in events[:end] if e.place == place and _same(e.said, last.said)]
    norms = [e for e in (*after, *reversed(inside)) if is_norm(body.get_submodule(e.module))]
    return _norm_taps(body, stack.name, norms[0], place) if norms else []


def _norm_taps(body: nn.Module, stack: str, event: Event, place: Place) -> list[Tap]:
    given, said = event.given, event.said
    if given is None or said is None:
        return []
    within = place.block if is_flat(given, place) else None

    def tap(name: str, side: Literal["input", "output"], through: Any = None) -> Tap:
        site = str(Site("norm", part=name, stack=stack))
        return Tap(site, event.module, side, event.call, through, within)

    norm = body.get_submodule(event.module)
    centred = centring(norm, given, said)
    middle = [] if centred is None else [
        tap("mid", "input", partial(normalised, centred=centred))
    ]  # fmt: skip
    return [tap("in", "input"), *middle, tap("out", "output")]


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None or one.numel() != other.numel():
        return False
    return torch.equal(one, other.to(one).reshape(one.shape))
