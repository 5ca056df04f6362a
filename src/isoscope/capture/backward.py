"""The forward and backward pass: gradients of a loss at sites, reported and never stored.

Parameters are frozen while it runs: the graph begins at the first site that is listened to,
and the gradient of a weight is made of what a map receives and of what flows back into it.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field, replace
from functools import partial
from math import isfinite
from typing import cast

import torch
from torch import Tensor, nn

from isoscope.capture.objective import Objective, Output, Targets, shuffle
from isoscope.capture.sites import Sites
from isoscope.capture.tap import FastPath, Tap, first_tensor, input_tensor, listening
from isoscope.dataclass import dataclass
from isoscope.errors import IsoscopeError, RowError
from isoscope.site import Site

GRAD, GRADW = "grad", "gradw"
EVERY = 8  # micro-batches, of which one has its targets permuted


def gradient_sites(sites: Sites, run: Callable[[], object]) -> Sites:
    """Return the sites of a model that have gradients, tapped where their activations are.

    `grad.L` is the stream after block L, `gradw.NAME` what the linear map NAME receives.
    """
    taps: dict[str, Tap] = {}
    widths: dict[str, int] = {}
    for name, tap in sites.taps.items():
        site = Site.parse(name)
        if site.family == "resid" and tap.through is None:
            own = str(Site(GRAD, site.layer, stack=site.stack))
            taps[own], widths[own] = replace(tap, site=own), sites.widths[name]
    for module, width in linear_maps(sites.body, run).items():
        own = f"{GRADW}.{module}"
        taps[own], widths[own] = Tap(own, module, "input"), width
    return Sites(sites.body, widths, taps)


def linear_maps(body: nn.Module, run: Callable[[], object]) -> dict[str, int]:
    """Return the linear maps that one forward pass calls once, on every position: name, width.

    Found by tracing: experts that see some of the tokens, and maps of pooled vectors, are none.
    """
    calls: dict[str, list[tuple[int, ...]]] = {}
    with ExitStack() as stack, torch.no_grad():
        for name, module in body.named_modules():
            if is_linear(module):
                handle = module.register_forward_pre_hook(
                    partial(_note, calls.setdefault(name, [])), with_kwargs=True
                )
                stack.callback(handle.remove)
        run()
    seen = {name: shapes[0] for name, shapes in calls.items() if len(shapes) == 1}
    lengths = [shape[:-1] for shape in seen.values() if len(shape) == 3]
    usual = max(lengths, key=lengths.count, default=())
    return {name: shape[-1] for name, shape in seen.items() if shape[:-1] == usual}


def _note(
    shapes: list[tuple[int, ...]], _module: nn.Module, inputs: tuple[object, ...], kw: object
) -> None:
    tensor = input_tensor(inputs, kw if isinstance(kw, dict) else {})
    if tensor is not None:
        shapes.append(tuple(tensor.shape))


def is_linear(module: nn.Module) -> bool:
    """Whether a module multiplies rows with a matrix: Linear, or Conv1D of GPT-2."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


Hear = Callable[[str, Tensor], None]  # site, and the gradient (B, T, d)
HearWeights = Callable[[str, Tensor, Tensor], None]  # site, inputs (B, T, d) and deltas


@dataclass
class Ears:
    """What is called with activations and gradients of a micro-batch."""

    activations: Hear
    gradients: Hear
    shuffled: Hear
    weights: HearWeights


@dataclass(frozen=True)
class Pass:
    """What one micro-batch gave besides what was heard."""

    loss: float
    targets: int


Anchor = tuple[Tensor, Callable[[Tensor], None]]  # where a graph begins, and who hears of it


@dataclass(eq=False)
class Backward:
    """Runs micro-batches forward and backward, while gradients of sites are heard."""

    sites: Sites  # of `gradient_sites`
    objective: Objective
    seed: int = 0
    every: int = EVERY
    _anchors: list[Anchor] = field(default_factory=list[Anchor], init=False)
    _last: Tensor | None = field(default=None, init=False)  # the stream after the last block
    _looking: bool = field(default=False, init=False)  # for the positions that a head reads
    _shuffling: bool = field(default=False, init=False)
    _heard: set[str] = field(default_factory=set[str], init=False)

    def run(
        self,
        names: Sequence[str],
        targets: Targets,
        number: int,
        ears: Ears,
        begin: Callable[[Tensor], None],
    ) -> Pass:
        """Run one micro-batch; `begin` is called with the positions that are rows, (B, T).

        `number` is that of the micro-batch in the whole run: it decides which ones have their
        targets permuted, and how.
        """
        streams = [name for name in names if Site.parse(name).family == GRAD]
        shuffled = None
        if streams and number % self.every == 0:
            shuffled = shuffle(targets.labels, self.seed, number)
        self._anchors, self._heard, self._shuffling = [], set(), False
        activations: list[tuple[str, Tensor]] = []
        reads = targets.rows is None
        with self._tapped(names, activations, ears, reads=reads), torch.enable_grad():
            output = self.objective.forward(targets, shuffled)
            check_loss(output.value, number, targets)
            rows = self._rows(targets, output)
            begin(rows)
            for site, tensor in activations:
                ears.activations(site, tensor)
            activations.clear()
            self._differentiate(output.start, output.gradient, more=shuffled is not None)
            if output.shuffled is not None:
                self._shuffling = True
                self._differentiate(*output.shuffled, more=False)
        self._anchors, self._last = [], None
        missing = [name for name in names if name not in self._heard]
        if missing:
            raise no_gradient(missing[0])
        return Pass(output.value, len(targets.labels))

    def _rows(self, targets: Targets, output: Output) -> Tensor:
        """Return the positions that are rows: with a target, or read by the head."""
        if targets.rows is not None:
            return targets.rows
        if output.rows is not None:
            return output.rows
        assert self._last is not None
        self._looking = True
        (found,) = torch.autograd.grad(output.start, self._last, retain_graph=True)
        self._looking = False
        return (found != 0).any(dim=-1)

    def _differentiate(self, start: Tensor, gradient: Tensor | None, *, more: bool) -> None:
        """Let gradients flow back to where the graph began."""
        if not start.requires_grad or not self._anchors:
            return
        found = cast(
            Sequence[Tensor | None],  # None where the loss does not depend on a tensor
            torch.autograd.grad(
                [start],
                [tensor for tensor, _ in self._anchors],
                None if gradient is None else [gradient],
                retain_graph=more,
                allow_unused=True,
            ),
        )
        for (_, report), each in zip(self._anchors, found, strict=True):
            if each is not None:
                report(each)

    def _report(self, site: str, ears: Ears, gradient: Tensor) -> None:
        """Pass on the gradient of a stream."""
        if self._looking:
            return
        self._heard.add(site)
        (ears.shuffled if self._shuffling else ears.gradients)(site, gradient.detach())

    @contextmanager
    def _tapped(
        self,
        names: Sequence[str],
        activations: list[tuple[str, Tensor]],
        ears: Ears,
        *,
        reads: bool,
    ) -> Generator[None]:
        """Hook the sites: streams where they leave a block, weights at their maps.

        With `reads` the last stream as well: which positions of it the head reads.
        """
        body, chosen = self.sites.body, set(names)
        known = {n: tap for n, tap in self.sites.taps.items() if Site.parse(n).family == GRAD}
        last = list(known)[-1] if reads and known else ""
        streams = [tap for name, tap in known.items() if name in chosen or name == last]
        weights = [self.sites.taps[n] for n in names if Site.parse(n).family == GRADW]

        def hear(site: str, tensor: Tensor) -> None:
            if site == last:
                self._last = tensor
            if site not in chosen:
                return
            activations.append((site, tensor.detach()))
            if tensor.requires_grad:
                tensor.register_hook(partial(self._report, site, ears))
            else:
                report = partial(self._report, site, ears)
                self._anchors.append((tensor.requires_grad_(True), report))

        with ExitStack() as stack:
            stack.enter_context(FastPath.disabled())
            calls = stack.enter_context(listening(body, streams, hear, detach=False))
            calls.restart()
            for tap in weights:
                hook = partial(self._tap_map, tap.site, activations, ears)
                handle = body.get_submodule(tap.module).register_forward_hook(
                    hook, with_kwargs=True
                )
                stack.callback(handle.remove)
            yield

    def _tap_map(
        self,
        site: str,
        activations: list[tuple[str, Tensor]],
        ears: Ears,
        _module: nn.Module,
        inputs: tuple[object, ...],
        keywords: dict[str, object],
        output: object,
    ) -> None:
        """Keep what a linear map receives until its output's gradient comes."""
        received, given = input_tensor(inputs, keywords), first_tensor(output)
        assert received is not None and given is not None
        received = received.detach()
        activations.append((site, received))

        def report(delta: Tensor) -> None:
            if self._looking:
                return
            self._heard.add(site)
            if not self._shuffling:
                ears.weights(site, received, delta.detach())

        if given.requires_grad:
            given.register_hook(report)
        else:
            self._anchors.append((given.requires_grad_(True), report))


def check_loss(value: float, number: int, targets: Targets) -> None:
    """Raise where a loss is NaN or infinite."""
    if isfinite(value):
        return
    first = targets.batch.documents[0]
    raise RowError(  # of a series, the checkpoint is skipped and named
        f"expected a finite loss at micro-batch {number}, got {value} (its first document is "
        f"{first!r})",
        hint="try --dtype=float32; a model whose training has diverged has no gradients",
        slug="tangent-loss-finite",
    )


def no_gradient(site: str) -> IsoscopeError:
    """Return the error for a site that the loss does not depend on."""
    return IsoscopeError(
        f"expected a gradient at {site}, got none",
        hint="the loss does not depend on this site; exclude it with --sites",
        slug="tangent-no-gradient",
    )
