"""Which attention module of which call gives the queries, keys and values of a layer."""

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from isoscope.capture.attention import PARTS, Seen, seeing
from isoscope.capture.families import CROSS
from isoscope.capture.projection import overhearing, projects
from isoscope.capture.tap import Calls, Hear
from isoscope.capture.watch import Watch
from isoscope.site import Site

Way = Literal["interface", "projection"]


@dataclass(frozen=True, slots=True)
class Head:
    """One head of one layer: where it is heard, and how wide it is."""

    site: str
    module: str
    way: Way
    part: str  # q, k or v
    call: int
    number: int
    width: int


class HeadWatch:
    """Notes every head of self-attention during the pass that a Watch writes down."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self._found: dict[tuple[str, str, int], dict[Way, list[Head]]] = {}
        self._calls: Counter[tuple[Way, str, str]] = Counter()

    @contextmanager
    def listening(self) -> Generator[None]:
        """Note heads while the block runs, through both ways."""
        own = [
            module
            for module, name in self.watch.names.items()
            for stack in self.watch.stacks
            if name.startswith(f"{stack.path}.")
            and not CROSS.search(name.removeprefix(stack.path))
        ]
        with (
            seeing(self.watch.body, own, self._seen("interface")),
            overhearing([m for m in own if projects(m)], self._seen("projection")),
        ):
            yield

    def heads(self) -> dict[str, Head]:
        """Return the heads by site; the interface is believed where it was heard."""
        found = [
            head
            for _, ways in sorted(self._found.items(), key=lambda item: _order(item[0]))
            for head in ways.get("interface", ways.get("projection", []))
        ]
        return {head.site: head for head in found}

    def _seen(self, way: Way) -> Seen:
        def seen(module: nn.Module, part: str, tensor: Tensor) -> None:
            name = self.watch.names[module]
            call = self._calls[way, name, part]
            self._calls[way, name, part] += 1
            place = self.watch.place(name)
            # keys of cross-attention, of a cache or of windows have another shape
            if place is None or (tensor.shape[0], tensor.shape[2]) != place.shape[:2]:
                return
            sites = [
                Site(part, place.layer, number, stack=place.stack)
                for number in range(tensor.shape[1])
            ]
            heads = [
                Head(str(site), name, way, part, call, number, tensor.shape[3])
                for number, site in enumerate(sites)
            ]
            key = (place.stack, part, place.layer)
            self._found.setdefault(key, {}).setdefault(way, heads)

        return seen


def _order(key: tuple[str, str, int]) -> tuple[str, int, int]:
    stack, part, layer = key
    return stack, PARTS.index(part), layer


@contextmanager
def hearing(
    body: nn.Module, heads: Iterable[Head], hear: Hear, calls: Calls, *, detach: bool = True
) -> Generator[None]:
    """Call `hear` with (batch, positions, width) of every head while the block runs."""
    wanted: dict[tuple[Way, nn.Module, str, int], list[Head]] = {}
    for head in heads:
        key = (head.way, body.get_submodule(head.module), head.part, head.call)
        wanted.setdefault(key, []).append(head)

    def seen_by(way: Way) -> Seen:
        def seen(module: nn.Module, part: str, tensor: Tensor) -> None:
            call = calls.number((way, module, part))
            for head in wanted.get((way, module, part, call), ()):
                hear(head.site, (tensor.detach() if detach else tensor)[:, head.number])

        return seen

    with ExitStack() as stack:
        through: Sequence[nn.Module] = _modules(wanted, "interface")
        if through:
            stack.enter_context(seeing(body, through, seen_by("interface")))
        beside = _modules(wanted, "projection")
        stack.enter_context(overhearing(beside, seen_by("projection")))
        yield


def _modules(keys: Iterable[tuple[Way, nn.Module, str, int]], way: Way) -> list[nn.Module]:
    return list(dict.fromkeys(module for heard, module, _, _ in keys if heard == way))
