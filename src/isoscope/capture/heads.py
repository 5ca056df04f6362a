"""Calls of attention, heard whole: queries and keys, before and after rotation, and scores.

Queries and keys come from transformers' attention interface or from projections, as sites
`q` and `k` do, or else from the product itself, fused or of two factors. Scores are those that
reach a softmax: while a module of attention runs, a torch function mode sees its call of
`scaled_dot_product_attention`, with scale and mask, or of `softmax`, with all that was added.
Nothing is assumed of biases, soft caps, windows or norms of queries and keys. Queries and keys
before rotation are the arguments of the functions that rotate, in the module's own file.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from isoscope.capture.attention import observe_attention, observe_projections
from isoscope.capture.discover import CROSS
from isoscope.capture.rotation import Rotation, observe_rotation
from isoscope.capture.scores import GivenScores, ProductScores, Scores, fit_scale
from isoscope.capture.stacks import Stack, find_stacks
from isoscope.capture.tap import FastPath, input_tensor
from isoscope.dataclass import dataclass
from isoscope.errors import SourceError, UndefinedError
from isoscope.site import CROSS as ACROSS
from isoscope.site import HEAD, Site

Way = Literal["interface", "projection", "product", "factors"]
WAYS: tuple[Way, ...] = ("interface", "projection", "product", "factors")  # the first that fits
_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
_PARTS = (
    nn.Linear,
    nn.Dropout,
    nn.Identity,
    nn.LayerNorm,
    nn.Embedding,
)  # whatever their names are
_SOFTMAX = {
    torch.nn.functional.softmax,
    torch.softmax,
    Tensor.softmax,
    torch.nn.functional.log_softmax,
}
_PRODUCT = torch.nn.functional.scaled_dot_product_attention
_FACTORS = {
    torch.matmul,
    Tensor.matmul,
    Tensor.__matmul__,
    torch.bmm,
    Tensor.bmm,
    torch.baddbmm,
    Tensor.baddbmm,
}
_WHOLE = torch.nn.functional.multi_head_attention_forward  # what nn.MultiheadAttention calls
_OTHER_STATES = ("key_value_states", "encoder_hidden_states")  # what keys of a crossing are of
TRIED = (
    "the attention interface of transformers, the projections of the module, the fused "
    "product of torch, and products of two factors in front of a softmax"
)


@dataclass(frozen=True, slots=True)
class LayerHeads:
    """The heads of one call of attention in a forward pass."""

    stack: str  # of its sites: "", enc, dec or cross
    layer: int
    module: str
    call: int  # of this module
    way: Way
    heads: int
    key_heads: int
    width: int
    rotated: bool  # whether queries and keys are rotated by position
    scale: float | None  # what was found where a call does not tell

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites of its heads."""
        return tuple(
            str(Site(HEAD, self.layer, n, stack=self.stack)) for n in range(self.heads)
        )

    @property
    def keys(self) -> tuple[str, ...]:
        """The sites of its keys; several heads may read the same ones."""
        return tuple(
            str(Site("k", self.layer, n, stack=self.stack)) for n in range(self.key_heads)
        )


@dataclass
class AttentionCall:
    """A call of attention under way: tensors are the model's own."""

    module: nn.Module
    found: dict[tuple[Way, str], Tensor] = field(default_factory=dict[tuple[Way, str], Tensor])
    rotations: list[Rotation] = field(default_factory=list[Rotation])
    factors: list[tuple[Tensor, Tensor]] = field(default_factory=list[tuple[Tensor, Tensor]])
    others: Tensor | None = None  # states that keys are made of, where that is not the stream
    scores: Scores | None = None

    def has(self, way: Way) -> bool:
        """Whether queries and keys are known in a way."""
        return (way, "q") in self.found and (way, "k") in self.found

    def pair(self, way: Way) -> tuple[Tensor, Tensor]:
        """Return queries (B, H, T, d) and keys (B, K, S, d)."""
        query, key = self.found[way, "q"], self.found[way, "k"]
        return query, _distinct(key) if way in ("product", "factors") else key

    def pair_before(self, way: Way) -> tuple[Tensor, Tensor] | None:
        """Return queries and keys before rotation; None where they were not rotated.

        Functions rotate both at once, or one tensor after the other (gptj); some rotate the
        first dimensions only, and some have heads behind positions.
        """
        query, key = self.pair(way)
        before: dict[str, Tensor] = {}
        for each in self.rotations:
            if len(each.before) == 2:
                first, second = _whole(each.before[0], query), _whole(each.before[1], key)
                if (first.shape, second.shape) == (query.shape, key.shape):
                    return first, second
                continue
            for part, whole in (("q", query), ("k", key)):
                if _is_part(each.after[0], whole):
                    before[part] = _whole(each.before[0], whole)
        return (before["q"], before["k"]) if before.keys() == {"q", "k"} else None


def _by_head(tensor: Tensor, whole: Tensor) -> Tensor:
    """Return a tensor as (B, heads, positions, width), whichever of the two comes first."""
    turned = tensor.shape[1:3] != whole.shape[1:3] and tensor.shape[1:3] == (
        whole.shape[2],
        whole.shape[1],
    )
    return tensor.transpose(1, 2) if turned else tensor


def _whole(tensor: Tensor, whole: Tensor) -> Tensor:
    """Return a tensor with the dimensions that are not rotated behind it."""
    tensor = _by_head(tensor, whole)
    if tensor.shape[:-1] != whole.shape[:-1] or tensor.shape[-1] == whole.shape[-1]:
        return tensor
    return torch.cat([tensor, whole[..., tensor.shape[-1] :]], dim=-1)


def _is_part(rotated: Tensor, whole: Tensor) -> bool:
    """Whether a tensor is the first dimensions of another, judged by one document."""
    rotated = _by_head(rotated, whole)
    if rotated.shape[:-1] != whole.shape[:-1] or rotated.shape[-1] > whole.shape[-1]:
        return False
    return torch.equal(rotated[0].to(whole.dtype), whole[0, ..., : rotated.shape[-1]])


class _Ear(TorchFunctionMode):
    """Follows which modules of attention run, and what their softmax receives."""

    def __init__(
        self,
        hear: Callable[[AttentionCall], None],
        factored: Collection[nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.hear = hear
        self.factored = factored  # modules whose products are looked at; None: all
        self.batch = 0  # documents of the stream that entered a block last
        self.open: list[AttentionCall] = []
        self.thread = threading.get_ident()

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if self.open:
            if func is _PRODUCT or func in _SOFTMAX:
                self._receive(func, args, kwargs)
            elif func in _FACTORS:
                self._note_factors(args)
            elif func is _WHOLE:
                with _no_override(), self:
                    return func(*args, **kwargs)
        return func(*args, **kwargs)

    def _note_factors(self, args: tuple[Any, ...]) -> None:
        """Note the factors of a product, which may become scores."""
        call = self.open[-1]
        if self.factored is not None and call.module not in self.factored:
            return
        first, second = args[-2:] if len(args) > 1 else (None, None)
        if not (isinstance(first, Tensor) and isinstance(second, Tensor)):
            return
        if first.ndim == second.ndim and first.ndim in (3, 4):
            call.factors.append((first.detach(), second.detach().transpose(-1, -2)))

    def _receive(
        self, func: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if func is _PRODUCT:
            call = self.open[-1]
            names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
            given = dict(zip(names, args, strict=False)) | kwargs
            query, key = given["query"].detach(), given["key"].detach()
            if query.ndim != 4:
                return
            call.found["product", "q"], call.found["product", "k"] = query, key
            call.scores = ProductScores(
                query,
                key,
                given.get("attn_mask"),
                bool(given.get("is_causal")),
                given.get("scale"),
            )
            self.hear(self._innermost() or call)
            return
        scores = args[0] if args else kwargs.get("input")
        axis = args[1] if len(args) > 1 else kwargs.get("dim")
        if not isinstance(scores, Tensor) or axis not in (-1, scores.ndim - 1):
            return
        call = self._innermost() or self._match_factors(scores)
        if call is None:
            return
        way: Way = next(way for way in WAYS if call.has(way))
        query, key = call.found[way, "q"], call.found[way, "k"]
        by_head = self._split(scores)
        if by_head.ndim != 4 or (scores.ndim == 3 and by_head.shape[:3] != query.shape[:3]):
            return
        scores, keys = by_head, key.shape[2]
        if scores.shape[-1] >= keys:
            call.scores = GivenScores(scores.detach(), keys)
            self.hear(call)

    def _match_factors(self, scores: Tensor) -> AttentionCall | None:
        """Return the innermost call, if one of its products has the shape of the scores.

        The first such product is that of queries and keys: terms of positions come after it.
        """
        call = self.open[-1]
        for query, key in call.factors:
            if (*query.shape[:-1], key.shape[-2]) == scores.shape and len(key) == len(query):
                query, key = self._split(query), self._split(key)
                if query.ndim == 4:
                    call.found["factors", "q"], call.found["factors", "k"] = query, key
                    return call
        return None

    def _split(self, tensor: Tensor) -> Tensor:
        """Return a tensor with an axis of heads, where documents and heads are one axis."""
        if tensor.ndim != 3 or not self.batch or len(tensor) % self.batch:
            return tensor
        return tensor.unflatten(0, (self.batch, -1))

    def _innermost(self) -> AttentionCall | None:
        """Return the innermost call whose queries and keys are known."""
        known = (each for each in reversed(self.open) if any(map(each.has, WAYS)))
        found = next(known, None)
        if found is not None and found is not self.open[-1]:
            found.scores = self.open[-1].scores
        return found

    def enter(
        self, module: nn.Module, inputs: tuple[object, ...], keywords: Mapping[str, object]
    ) -> None:
        """Note that a module of attention begins to run: a hook."""
        others = (keywords.get(name) for name in _OTHER_STATES)
        states = next((each for each in others if isinstance(each, Tensor)), None)
        if states is None:
            more = [each for each in inputs[1:] if isinstance(each, Tensor) and each.ndim == 3]
            states = next((each for each in more if each.is_floating_point()), None)
        self.open.append(AttentionCall(module, others=states))

    def leave(self, module: nn.Module, _inputs: object, _output: object) -> None:
        """Note that a module of attention has run: a hook."""
        while self.open and self.open.pop().module is not module:
            pass

    def observe(self, way: Way, module: nn.Module, part: str, tensor: Tensor) -> None:
        """Take queries or keys of a module that runs."""
        for call in reversed(self.open):
            if call.module is module:
                call.found[way, part] = tensor.detach()
                return

    def rotate(self, rotation: Rotation) -> None:
        """Take what a function that rotates was called with."""
        if self.open and self.thread == threading.get_ident():
            for call in self.open:
                call.rotations.append(rotation)


@contextmanager
def _no_override() -> Generator[None]:
    """Let a function of torch run through although a mode is on: what it calls is heard."""
    home: dict[str, Any] = torch.nn.functional.__dict__
    before = home["has_torch_function"]
    home["has_torch_function"] = lambda _: False
    try:
        yield
    finally:
        home["has_torch_function"] = before


def _attention_modules(body: nn.Module, stacks: Sequence[Stack]) -> list[nn.Module]:
    """Return the modules of blocks that are attention by their class or by their name."""
    found: dict[nn.Module, None] = {}
    for block in (each for stack in stacks for each in stack.blocks):
        for name, module in body.get_submodule(block).named_modules():
            own = name.rpartition(".")[2]
            if not isinstance(module, _PARTS) and (
                _ATTENTION.search(type(module).__name__) or _ATTENTION.search(own)
            ):
                found[module] = None
    return list(found)


def _distinct(key: Tensor) -> Tensor:
    """Return each key head once, where they were repeated for the queries that share them."""
    heads = key.shape[1]
    for count in range(1, heads):
        if heads % count == 0:
            apart = key.unflatten(1, (count, heads // count))
            if torch.equal(apart, apart[:, :, :1].expand_as(apart)):
                return apart[:, :, 0]
    return key


EnterBlock = Callable[[str, int, Tensor], None]  # stack, layer, the stream that enters


class Passes:
    """Counts blocks and calls within a forward pass; `restart` before each."""

    def __init__(self) -> None:
        self.layers: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.place: dict[str, tuple[int, tuple[int, ...]]] = {}  # layer and shape, by stack

    def restart(self) -> None:
        """Begin a new forward pass."""
        self.layers.clear()
        self.calls.clear()
        self.place.clear()


@contextmanager
def _listening(
    body: nn.Module,
    stacks: Sequence[Stack],
    hear: Callable[[AttentionCall], None],
    passes: Passes,
    enter: EnterBlock | None = None,
    only: Mapping[Way, Iterable[nn.Module]] | None = None,
) -> Generator[None]:
    """Hear every call of attention in the blocks of some stacks."""
    modules = _attention_modules(body, stacks)
    observed = only or {"interface": modules, "projection": modules}
    ear = _Ear(hear, None if only is None else list(only.get("factors", ())))

    def begin(
        stack: str,
        _module: nn.Module,
        inputs: tuple[object, ...],
        keywords: Mapping[str, object],
    ) -> None:
        tensor = input_tensor(inputs, keywords)
        layer = passes.layers[stack]
        passes.layers[stack] += 1
        passes.place[stack] = layer, () if tensor is None else tuple(tensor.shape)
        ear.batch = 0 if tensor is None else len(tensor)
        if enter is not None and tensor is not None:
            enter(stack, layer, tensor.detach())

    with ExitStack() as handles:
        handles.enter_context(FastPath.disabled())
        for stack in stacks:
            for block in dict.fromkeys(stack.blocks):
                hook = partial(begin, stack.name)
                handle = body.get_submodule(block).register_forward_pre_hook(
                    hook, with_kwargs=True
                )
                handles.callback(handle.remove)
        for module in modules:
            handle = module.register_forward_pre_hook(ear.enter, with_kwargs=True)
            handles.callback(handle.remove)
            handles.callback(module.register_forward_hook(ear.leave).remove)
        through = list(observed.get("interface", ()))
        if through:
            handles.enter_context(
                observe_attention(body, through, partial(ear.observe, "interface"))
            )
        own = list(observed.get("projection", ()))
        handles.enter_context(observe_projections(own, partial(ear.observe, "projection")))
        handles.enter_context(observe_rotation(modules, ear.rotate))
        handles.enter_context(ear)
        yield


@dataclass(frozen=True)
class Heads:
    """All heads of a model, and how to listen to them."""

    body: nn.Module
    stacks: tuple[Stack, ...]
    layers: tuple[LayerHeads, ...]
    remarks: tuple[str, ...] = ()  # attention that cannot be heard, and why

    @classmethod
    def discover(cls, body: nn.Module, run: Callable[[], object], name: str = "") -> "Heads":
        """Return the heads found in one small forward pass of the body."""
        try:
            stacks = tuple(find_stacks(body))
        except SourceError as error:
            raise _no_heads(body, name) from error
        names = {module: each for each, module in body.named_modules()}
        passes, found, lost = Passes(), dict[str, LayerHeads](), dict[str, str]()
        more: dict[str, str] = {}  # heads beside those that are read

        def hear(call: AttentionCall) -> None:
            each = names[call.module]
            number = passes.calls[each]
            passes.calls[each] += 1
            layer = _place(call, each, number, stacks, passes)
            if isinstance(layer, str):
                lost[type(call.module).__name__] = layer
            elif (known := found.setdefault(layer.sites[0], layer)) is not layer:
                more[type(call.module).__name__] = (
                    f"it attends again in the same block, with {layer.heads} heads of width "
                    f"{layer.width} after {known.heads} of width {known.width}, and a layer "
                    "is read as heads of one width"
                )

        with torch.no_grad(), _listening(body, stacks, hear, passes):
            run()
        if not found:
            raise _not_heard(body, stacks, lost, name)
        layers = sorted(found.values(), key=lambda each: Site.parse(each.sites[0]).key)
        remarks = [f"heads of {kind} are excluded: {why}" for kind, why in lost.items()]
        remarks += [
            f"further heads of {kind} are excluded: {why}" for kind, why in more.items()
        ]
        return cls(body, stacks, tuple(layers), tuple(remarks))

    @contextmanager
    def listening(
        self,
        hear: Callable[[LayerHeads, AttentionCall], None],
        enter: EnterBlock | None = None,
    ) -> Generator[Passes]:
        """Call `hear` at every softmax of these heads, and `enter` where a block begins."""
        by_call = {(each.module, each.call): each for each in self.layers}
        names = {module: each for each, module in self.body.named_modules()}
        only: dict[Way, dict[nn.Module, None]] = {
            "interface": {}, "projection": {}, "factors": {},
        }  # fmt: skip
        for each in self.layers:
            if each.way != "product":
                only[each.way][self.body.get_submodule(each.module)] = None
        passes = Passes()

        def take(call: AttentionCall) -> None:
            name = names[call.module]
            layer = by_call.get((name, passes.calls[name]))
            passes.calls[name] += 1
            if layer is not None:
                hear(layer, call)

        with _listening(self.body, self.stacks, take, passes, enter, only):
            yield passes


def _place(
    call: AttentionCall, name: str, number: int, stacks: Sequence[Stack], passes: Passes
) -> LayerHeads | str:
    """Return the heads of a call, or why they are none of the stream's."""
    stack = next(each for each in stacks if name.startswith(f"{each.path}."))
    if stack.name not in passes.place:
        return "its block is run without being called, so that hooks do not see it"
    layer, shape = passes.place[stack.name]
    way: Way = next(way for way in WAYS if call.has(way))
    query, key = call.pair(way)
    scores = call.scores
    assert scores is not None
    crossing = bool(CROSS.search(name.removeprefix(stack.path)))
    if query.ndim != 4 or (query.shape[0], query.shape[2]) != shape[:2] or len(shape) != 3:
        return "it regroups positions, so that a query is at no one place of a document"
    if len(key) != len(query) or query.shape[1] % key.shape[1]:
        return "its keys cannot be assigned to its queries"
    if not crossing and key.shape[2] != query.shape[2]:
        return "it attends to other positions than those of its block"
    if crossing and len(stacks) < 2:
        return "it attends to states that no stack of this model makes"
    if scores.heads != query.shape[1]:
        return "its scores are not one matrix per head"
    scale = scores.scale
    if isinstance(scores, GivenScores):
        scale = fit_scale(query, key, scores.tensor)
    return LayerHeads(
        stack=ACROSS if crossing else stack.name,
        layer=layer,
        module=name,
        call=number,
        way=way,
        heads=query.shape[1],
        key_heads=key.shape[1],
        width=query.shape[3],
        rotated=call.pair_before(way) is not None,
        scale=scale,
    )


def _not_heard(
    body: nn.Module, stacks: Sequence[Stack], lost: Mapping[str, str], name: str
) -> UndefinedError:
    kinds = dict.fromkeys(type(each).__name__ for each in _attention_modules(body, stacks))
    if not kinds:
        return _no_heads(body, name)
    why = next(iter(lost.values()), "no softmax over keys was seen in it")
    return UndefinedError(
        f"cannot read the attention of {', '.join(lost or kinds)} in {name or 'this model'}: "
        f"{why}",
        hint=f"tried {TRIED}; load the model with attn_implementation='sdpa' or 'eager' if it "
        "has another",
        slug="attention-unreadable",
    )


def _no_heads(body: nn.Module, name: str) -> UndefinedError:
    kind = type(body).__name__
    return UndefinedError(
        f"expected attention heads in {name or kind}, got {kind}, which has none",
        hint="state-space, recurrent and convolutional models have no queries and keys; "
        "survey their residual stream instead",
        slug="no-heads",
    )
