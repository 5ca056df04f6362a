"""A penalty in a loop of your own: its sites are recorded as the model runs."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from threading import Event
from typing import Self

import torch
from torch import Tensor, nn

from isoscope.control.listening import (
    Pass,
    SiteListener,
    find_transformer,
    outside_graph,
    trains,
)
from isoscope.control.penalty.isoscore_star import IStar
from isoscope.control.penalty.penalty import Penalty
from isoscope.control.penalty.row_selection import Marks, layer_numbers
from isoscope.dataclass import dataclass
from isoscope.errors import PenaltyError, StreamError
from isoscope.site import Site


@dataclass(frozen=True)
class RecordedPass:
    """The sites of one forward pass, and which of its tokens are real."""

    layers: list[Tensor]  # (batch, time, d) each
    mask: Tensor | None  # (batch, time)


class PenaltyListener:
    """Records the sites of a penalty inside a `with` block, and computes the penalty on them.

    The sites are those of the model of transformers inside, or the outputs of the modules
    named. Only passes that train are recorded. Several passes before a call, as of anchors
    and positives, are one cloud. Passes of a step that ended without a call are dropped when
    the next one begins.
    """

    def __init__(
        self, model: nn.Module, penalty: Penalty, modules: Sequence[str] | None = None
    ) -> None:
        self.penalty = penalty
        self.listener = SiteListener(model, penalty.sites, modules)
        chosen = layer_numbers(penalty.layers, len(self.listener.names))
        self.listener.names = tuple(self.listener.names[number] for number in chosen)
        self._current: dict[str, Tensor] = {}  # of the pass under way, by site
        self._own: list[Tensor] = []  # the tensors of the model that they are of
        self._passes: list[RecordedPass] = []
        self._calls: dict[str, list[Tensor]] = {}  # of named modules, which have no passes
        self._step_over = Event()  # set once gradients have come back to one of its passes
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(
            self.listener.listening(self._hear, end=self._end_pass, detach=False)
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self.forget()

    def __call__(self, mask: Marks | None = None, *, documents: Marks | None = None) -> Tensor:
        """Return the penalty on what was recorded since the last call, and forget it.

        The mask is that of the model's own call unless another is given.
        """
        passes = self._recorded()
        self.forget()
        if not passes:
            raise PenaltyError(
                "expected a training pass of the model before its penalty, got none",
                hint="call the model first, in training mode and with gradients; a loss that "
                "runs it again in its backward pass (cached, GradCache) cannot be penalised",
                slug="nothing-heard",
            )
        if len(passes) == 1:
            only = passes[0]
            chosen = only.mask if mask is None else mask
            return self.penalty.evaluate(only.layers, chosen, documents=documents)
        layers, numbers = _merge(passes)
        return self.penalty.evaluate(
            layers, documents=numbers if documents is None else documents
        )

    def forget(self) -> None:
        """Drop what was recorded, as for a step whose loss is thrown away."""
        self._passes.clear()
        self._calls.clear()
        self._step_over = Event()

    @outside_graph
    def _hear(self, current: Pass | None, site: str, tensor: Tensor) -> None:
        named = self.listener.named
        if not (
            trains(self.listener.body) if named else current is not None and current.trains
        ):
            return
        if self._step_over.is_set():
            self.forget()
        # Within a block a model may go on to write into its own tensor.
        kept = tensor if Site.parse(site).is_stream else tensor.clone()
        if named:
            self._calls.setdefault(site, []).append(kept)
            self._await_gradients([tensor])
        else:
            self._current[site] = kept
            self._own.append(tensor)

    @outside_graph
    def _end_pass(self, ended: Pass, complete: bool) -> None:
        recorded, own = self._current, self._own
        self._current, self._own = {}, []
        if complete and recorded:
            self._passes.append(
                RecordedPass([recorded[name] for name in self.listener.names], ended.mask)
            )
            # Only now: a checkpoint gives them their gradients at its end.
            self._await_gradients(own)

    def _await_gradients(self, tensors: Sequence[Tensor]) -> None:
        step_over = self._step_over
        for tensor in tensors:
            if tensor.requires_grad:
                tensor.register_hook(lambda _gradient: step_over.set())

    def _recorded(self) -> list[RecordedPass]:
        if not self.listener.named:
            return list(self._passes)
        calls = {name: self._calls.get(name, []) for name in self.listener.names}
        if len({len(each) for each in calls.values()}) > 1:
            raise PenaltyError(
                "expected modules that run equally often, got "
                + ", ".join(f"{name}: {len(each)}" for name, each in calls.items()),
                hint="name modules that run once in each pass",
                slug="nothing-heard",
            )
        return [
            RecordedPass(list(layers), None) for layers in zip(*calls.values(), strict=True)
        ]


def penalised(
    model: nn.Module, penalty: Penalty, modules: Sequence[str] | None = None
) -> PenaltyListener:
    """Return a block in which a plain loop can add a penalty to its loss.

    >>> import torch
    >>> from isoscope.control import IStar
    >>> model = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    >>> net = torch.nn.Sequential(model)
    >>> with penalised(net, IStar(weight=1.0), modules=["0"]) as penalty:
    ...     hidden = net(torch.randn(4, 5, 8, generator=torch.manual_seed(0)))
    ...     loss = hidden.square().mean() + penalty()
    >>> loss.backward()
    """
    return PenaltyListener(model, penalty, modules)


def _merge(passes: Sequence[RecordedPass]) -> tuple[list[Tensor], Tensor]:
    """Return the real rows of all passes, layer by layer, and the sequence of each row."""
    numbers: list[Tensor] = []
    rows: list[list[Tensor]] = [[] for _ in passes[0].layers]
    start = 0
    for each in passes:
        first = each.layers[0]
        real = torch.ones(first.shape[:2], dtype=torch.bool, device=first.device)
        if each.mask is not None:
            real = each.mask.to(first.device).bool()
        places = torch.arange(start, start + len(first), device=first.device)
        numbers.append(places[:, None].expand(real.shape)[real])
        for kept, layer in zip(rows, each.layers, strict=True):
            kept.append(layer[real.to(layer.device)])
        start += len(first)
    return [torch.cat(kept) for kept in rows], torch.cat(numbers)


def stream_epoch(
    penalty: IStar, model: nn.Module, batches: Iterable[Mapping[str, object]]
) -> None:
    """Stream the matrix of a penalty at the start of an epoch, and keep the random state."""
    body = find_transformer(model)
    known = set(inspect.signature(body.forward).parameters)
    with torch.random.fork_rng():
        penalty.stream(body, (_inputs(batch, known) for batch in batches))


def _inputs(batch: object, known: set[str]) -> dict[str, object]:
    """Return what of a batch the body of a model takes; the labels are for the head."""
    named = batch.items() if isinstance(batch, Mapping) else ()
    found = {name: value for name, value in named if name in known}
    if not found:
        raise StreamError(
            "expected training batches that name the inputs of the model, got others",
            hint="towards='running' needs no batches; or call penalty.stream(model, batches) "
            "yourself, with dictionaries as a tokenizer makes them",
            slug="stream-batches",
        )
    return found
