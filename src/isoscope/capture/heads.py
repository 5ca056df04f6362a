"""Which attention module of which call gives the queries, keys and values of a layer."""

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Literal

from torch import Tensor, nn

from isoscope.capture.attention import observe_attention, observe_projections
from isoscope.capture.discover import CROSS
from isoscope.capture.stacks import Trace
from isoscope.capture.tap import Calls, Hear
from isoscope.site import HEADS, Site

Way = Literal["interface", "projection"]


@dataclass(frozen=True, slots=True)
class AttentionHead:
    """One head of one layer: where it is observed, and how wide it is."""

    site: str
    module: str
    way: Way
    part: str  # q, k or v
    call: int
    number: int
    width: int


class HeadTrace:
    """Records every head of self-attention during the pass that a Trace records."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._found: dict[tuple[str, int, int], dict[Way, list[AttentionHead]]] = {}
        self._calls: Counter[tuple[Way, str, str]] = Counter()

    @contextmanager
    def recording(self) -> Generator[None]:
        """Record heads while the block runs, in both ways."""
        own = [
            module
            for module, name in self.trace.names.items()
            for stack in self.trace.stacks
            if name.startswith(f"{stack.path}.")
            and not CROSS.search(name.removeprefix(stack.path))
        ]
        with (
            observe_attention(self.trace.body, own, partial(self._record, "interface")),
            observe_projections(own, partial(self._record, "projection")),
        ):
            yield

    def heads(self) -> dict[str, AttentionHead]:
        """Return the heads by site; the interface has priority."""
        found = [
            head
            for _, ways in sorted(self._found.items())  # by stack, part and layer
            for head in ways.get("interface", ways.get("projection", []))
        ]
        return {head.site: head for head in found}

    def _record(self, way: Way, module: nn.Module, part: str, tensor: Tensor) -> None:
        name = self.trace.names[module]
        call = self._calls[way, name, part]
        self._calls[way, name, part] += 1
        place = self.trace.place(name)
        # keys of cross-attention, of a cache or of windows have another shape
        if place is None or (tensor.shape[0], tensor.shape[2]) != place.shape[:2]:
            return
        heads = [
            AttentionHead(
                site=str(Site(part, place.layer, number, stack=place.stack)),
                module=name,
                way=way,
                part=part,
                call=call,
                number=number,
                width=tensor.shape[3],
            )
            for number in range(tensor.shape[1])
        ]
        key = (place.stack, HEADS.index(part), place.layer)
        self._found.setdefault(key, {}).setdefault(way, heads)


@contextmanager
def hear_heads(
    body: nn.Module,
    heads: Iterable[AttentionHead],
    hear: Hear,
    calls: Calls,
    *,
    detach: bool = True,
) -> Generator[None]:
    """Call `hear` with (batch, positions, width) of every head while the block runs."""
    by_call: dict[tuple[Way, nn.Module, str, int], list[AttentionHead]] = {}
    for head in heads:
        key = (head.way, body.get_submodule(head.module), head.part, head.call)
        by_call.setdefault(key, []).append(head)

    def observe(way: Way, module: nn.Module, part: str, tensor: Tensor) -> None:
        call = calls.number((way, module, part))
        for head in by_call.get((way, module, part, call), ()):
            hear(head.site, (tensor.detach() if detach else tensor)[:, head.number])

    with ExitStack() as stack:
        through: Sequence[nn.Module] = _modules(by_call, "interface")
        if through:
            stack.enter_context(observe_attention(body, through, partial(observe, "interface")))
        beside = _modules(by_call, "projection")
        stack.enter_context(observe_projections(beside, partial(observe, "projection")))
        yield


def _modules(keys: Iterable[tuple[Way, nn.Module, str, int]], way: Way) -> list[nn.Module]:
    return list(dict.fromkeys(module for how, module, _, _ in keys if how == way))
