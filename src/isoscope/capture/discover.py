"""Which module of a model gives which site: a tap for everything a module passes on whole.

`attn.L` and `mlp.L` are what a part adds to the residual stream, before the residual is
added. That is the output of the module named here, so in the families of the table:

- gemma 2 and 3, olmo 2: after the norm between the part and the stream;
- dinov2: after its layer scale (beit scales by a bare parameter, which has no hook);
- bert, roberta, electra, deberta, canine, mpnet, albert: the dense layer before residual
  and norm;
- bloom, falcon, mpt: the dense layer, because bloom and mpt add the residual around it;
- bart, whisper, opt, and nn.TransformerEncoderLayer: the second layer of the feed-forward;
- rwkv: time mixing is not attention, so there is no `attn.L`.

Elsewhere it is the child that is named attention, or MLP, feed-forward and the like, itself
or its class. Where a block has several, the first is meant. Cross-attention never is.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from isoscope.capture.norm import fit_norm, is_norm, normalise
from isoscope.capture.stacks import BlockRun, Event, Stack, Trace, no_blocks
from isoscope.capture.tap import Tap, Through, spatial
from isoscope.dataclass import dataclass
from isoscope.site import Site


def plan_taps(trace: Trace, run: Callable[[], object]) -> dict[str, Tap]:
    """Return the taps by site, found by tracing one small forward pass.

    The module tree has the blocks and their parts; which norm comes after the last of
    them shows in its input, because names and places differ (wav2vec2 has a norm
    beside its blocks that comes before them).
    """
    of = {stack.name: _parts_of(trace.body, stack) for stack in trace.stacks}
    modules = {name for found in of.values() for family in found.values() for name in family}
    events = trace.run(modules | _norms(trace.body, trace.stacks), run)
    taps: list[Tap] = []
    for stack in trace.stacks:
        taps += _stream(stack, events)
        for family, names in of[stack.name].items():
            taps += _parts(stack, family, names, events)
        taps += _final_norm(trace.body, stack, events)
    if not taps:
        raise no_blocks(trace.body)
    return {tap.site: tap for tap in taps}


def _parts_of(body: nn.Module, stack: Stack) -> dict[str, set[str]]:
    """Return the full names of attention and feed-forward parts of all blocks."""
    found: dict[str, set[str]] = {"attn": set(), "mlp": set()}
    for block in () if stack.spatial else stack.blocks:
        where = find_parts(body.get_submodule(block))
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


def _runs(stack: Stack, events: Sequence[Event]) -> list[tuple[int, Event, BlockRun]]:
    """Return the runs of the stack's blocks, with their index in the trace."""
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
            _turn(event.received),
        )
        for _, event, _ in runs[:1]
    ]
    return first + [
        Tap(
            str(Site(family, place.layer, stack=stack.name)),
            event.module,
            "output",
            event.call,
            _turn(event.returned),
        )
        for _, event, place in runs
    ]


def _turn(tensor: Tensor | None) -> Through | None:
    """Return what makes rows of a map: convolutional networks, and attention among them."""
    return spatial if tensor is not None and tensor.ndim == 4 else None


def _parts(stack: Stack, family: str, names: set[str], events: Sequence[Event]) -> list[Tap]:
    found: dict[str, Tap] = {}
    for event in events:
        place, returned = event.place, event.returned
        if event.module not in names or place is None or returned is None:
            continue
        flat = is_flat(returned, place)
        if flat or returned.shape[:-1] == place.shape[:-1]:
            site = str(Site(family, place.layer, stack=stack.name))
            within = place.block if flat else None
            tap = Tap(site, event.module, "output", event.call, within=within)
            found.setdefault(site, tap)
    return list(found.values())


def is_flat(tensor: Tensor, place: BlockRun) -> bool:
    """Whether a tensor has all tokens of the batch in one row, as in OPT's feed-forward."""
    shape = place.shape
    return tensor.ndim == 2 and len(shape) == 3 and len(tensor) == shape[0] * shape[1]


def _final_norm(body: nn.Module, stack: Stack, events: Sequence[Event]) -> list[Tap]:
    """Return the taps on the norm after the last block, or on the one that ends it."""
    runs = _runs(stack, events)
    if not runs or stack.spatial:
        return []
    end, last, place = runs[-1]
    after = [e for e in events[end + 1 :] if _same(e.received, last.returned)]
    inside = [e for e in events[:end] if e.place == place and _same(e.returned, last.returned)]
    norms = [e for e in (*after, *reversed(inside)) if is_norm(body.get_submodule(e.module))]
    return _norm_taps(body, stack.name, norms[0], place) if norms else []


def _norm_taps(body: nn.Module, stack: str, event: Event, place: BlockRun) -> list[Tap]:
    received, returned = event.received, event.returned
    if received is None or returned is None:
        return []
    within = place.block if is_flat(received, place) else None

    def tap(name: str, side: Literal["input", "output"], through: Through | None = None) -> Tap:
        site = str(Site("norm", part=name, stack=stack))
        return Tap(site, event.module, side, event.call, through, within)

    norm = body.get_submodule(event.module)
    fit = fit_norm(norm, received, returned)
    middle = []
    if fit is not None:
        middle.append(tap("mid", "input", partial(normalise, centred=fit.centred)))
    return [tap("in", "input"), *middle, tap("out", "output")]


def _same(one: Tensor | None, other: Tensor | None) -> bool:
    if one is None or other is None or one.numel() != other.numel():
        return False
    return torch.equal(one, other.to(one).reshape(one.shape))


CROSS = re.compile(r"cross|enc_?dec|encoder_attn|encoderdecoder", re.IGNORECASE)
_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
_FORWARD = re.compile(r"mlp|ffn|feed_?forward|sparsemoe|dense(relu|gated|act)", re.IGNORECASE)

_NORM = re.compile(r"norm|dropout", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parts:
    """Dotted names within a block; None where it has no such part."""

    attn: str | None
    mlp: str | None


# The first row whose modules a block has is taken.
TABLE = (
    Parts("post_attention_layernorm", "post_feedforward_layernorm"),
    Parts("layer_scale1", "layer_scale2"),
    Parts("attention.output.dense", "output.dense"),
    Parts("attention.attn.o", "output.dense"),
    Parts("attention.dense", "ffn_output"),
    Parts("self_attention.dense", "mlp.dense_4h_to_h"),
    Parts("attn", "ffn.down_proj"),
    Parts("self_attn", "fc2"),
    Parts("self_attn", "linear2"),
)


def find_parts(block: nn.Module) -> Parts:
    """Return where the parts of a block are."""
    names = {name for name, _ in block.named_modules()}
    for row in TABLE:
        if row.attn in names and row.mlp in names:
            return row
    attn = next((n for n in _find_children(block, _ATTENTION) if not CROSS.search(n)), None)
    if attn is not None and hasattr(block.get_submodule(attn), "receptance"):
        attn = None  # rwkv
    return Parts(attn, next(iter(_find_children(block, _FORWARD)), None))


def _find_children(block: nn.Module, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the children of such a name, and those of the entries of a list (T5)."""
    for dots in (0, 2):
        for name, module in block.named_modules():
            words = f"{name.split('.')[-1]} {type(module).__name__}"
            fits = pattern.search(words) and not _NORM.search(words)
            if name and name.count(".") == dots and fits:
                yield name
