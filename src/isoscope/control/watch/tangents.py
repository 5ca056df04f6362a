"""Tangents of a training run: do its gradients go where activations were large before?

The gradients are those of the training step itself: hooks are on the tensors of its first
pass, and nothing is computed twice. A proxy is fitted to the activations of one reading and
holds the gradients of the next, so that no batch is compared with itself.
"""

from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.accumulate import Tally
from isoscope.accumulate.survey import Survey, variants
from isoscope.blas import one_blas_thread
from isoscope.capture.backward import GRADW, gradient_sites
from isoscope.capture.feed import sample_inputs
from isoscope.capture.gradient_sums import GradientSums
from isoscope.capture.objective import check_trained
from isoscope.capture.tap import Tap, first_tensor, input_tensor
from isoscope.control.listening import (
    Pass,
    SiteListener,
    as_loaded,
    evaluating,
    recomputing,
)
from isoscope.control.processes import World
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, IsoscopeError, TooFewRowsError, UndefinedError
from isoscope.hashing import named_documents
from isoscope.measures import MEASURES as RECORDS
from isoscope.measures.proxy import check_rank, fit_pca
from isoscope.registry import unknown
from isoscope.site import Site
from isoscope.study.gradients import VIEWS
from isoscope.study.reading import finalize_all
from isoscope.types import Array

MEASURES = ("tangent-energy", "tangent-energy-ratio")
MATCH = "tangent-match"  # of a proxy with the one before it: mean squared cosine
CONTROLS = 99  # random subspaces, where a measure draws them
_MANY = 1 << 30  # rows, before any are known
_NOT_FINITE = "its gradient is NaN or infinite, and so is the loss, or it overflowed"
_NONE = "no gradient has come back to it"
_FROZEN = "nothing before it is trained, so that it has no gradient"
Numbers = dict[tuple[str, str], float]  # by measure and site


@dataclass(frozen=True, eq=False)
class Activations:
    """Rows of a site in one process: how many, their mean, and their scatter about it."""

    rows: int
    mean: Array  # (d,)
    scatter: Array  # (d, d)

    @classmethod
    def of(cls, rows: Tensor) -> "Activations":
        """Sum up rows, (n, d)."""
        wide = rows if rows.dtype == torch.float64 else rows.float()
        mean = wide.mean(dim=0)
        wide = wide - mean
        numbers = (each.double().cpu().numpy() for each in (mean, wide.T @ wide))
        return cls(len(rows), *numbers)

    @classmethod
    def pool(cls, parts: "Sequence[Activations]") -> "Activations":
        """Return those of all processes."""
        if len(parts) == 1:
            return parts[0]
        rows = sum(each.rows for each in parts)
        mean = sum((each.rows * each.mean for each in parts), np.zeros(1)) / rows
        scatter = sum(
            (
                each.scatter + each.rows * np.outer(each.mean - mean, each.mean - mean)
                for each in parts
            ),
            np.zeros(1),
        )
        return cls(rows, mean, scatter)


class Tangents:
    """Reads the gradients of training steps against directions of earlier activations.

    `Watch(..., every=50, tangents=Tangents())` logs `anisotropy/tangent-energy/grad.3`, the
    share of the gradient's energy that lies in the proxy of site 3, and the ratio of that
    share to the one of a control: `anisotropy/tangent-energy-ratio-random/grad.3`. The first
    reading only fits proxies.

    Sites are `grad` (the stream after every block), `grad.3`, and `gradw.NAME`, the gradient
    of the linear map NAME, which has a shuffled control. `rank` is the number of directions,
    or the fewest that hold the share `explained` of the variance. With `follow=False` the
    proxies of the first reading are kept, as published.
    """

    def __init__(
        self,
        sites: Sequence[str] = ("grad",),
        *,
        rank: int | None = None,
        explained: float | None = None,
        measures: Sequence[str] = MEASURES,
        follow: bool = True,
        seed: int = 0,
    ) -> None:
        for name in measures:
            if name not in VIEWS:
                raise unknown("measure of gradients", name, VIEWS)
        if (rank is not None and rank < 1) or not 0 < (explained or 0.5) <= 1:
            raise ConfigError(
                f"expected a rank of at least 1 and a share of variance of at most 1, got "
                f"rank={rank} and explained={explained}",
                hint="rank=16 is usual; explained=0.5 takes directions that hold half of it",
                slug="watch-settings",
            )
        self.families, self.measures = tuple(sites), tuple(measures)
        self.rank, self.explained, self.follow, self.seed = rank, explained, follow, seed
        self.proxies: dict[str, Array] = {}  # by site, (d, k)
        self._taps: GradientTaps | None = None
        self._step: StepGradients | None = None

    def place(self, model: nn.Module) -> "GradientTaps":
        """Find the sites in a model, and refuse what has no gradient or not enough width."""
        if self._taps is None or not self._taps.listener.fits(model):
            self._taps = GradientTaps(model, self.families)
            for site, width in self._taps.widths.items():
                check_rank(self.rank, width, _MANY, site)
        return self._taps

    @contextmanager
    def listening(self, model: nn.Module, world: World) -> Generator[None]:
        """Listen to the first training pass, and to the gradients that come back to it."""
        step = self._step = StepGradients(self.proxies, f"batch:{world.rank}", self.seed)
        with self.place(model).listening(step):
            yield

    def read(self, world: World) -> tuple[Numbers, dict[str, str]]:
        """Return numbers of the step that was listened to, and why some sites have none.

        Then the proxies are fitted anew, to the activations of the same step.
        """
        step, self._step = self._step, None
        own = (Survey(), {}, {}) if step is None else step.finish()
        everywhere = world.gather_objects((own[0].to_state(), own[1], own[2]))
        lost = {site: why for _, _, reasons in everywhere for site, why in reasons.items()}
        survey = own[0]
        if len(everywhere) > 1:
            survey = Survey()
            for (meta, arrays), _, _ in everywhere:
                survey.merge(Survey.from_state(meta, arrays))
        numbers = {
            key: value for key, value in self._numbers(survey).items() if key[1] not in lost
        }
        activations: dict[str, list[Activations]] = {}
        for _, parts, _ in everywhere:
            for site, part in parts.items():
                activations.setdefault(site, []).append(part)
        with one_blas_thread():
            for site, parts in activations.items():
                if site not in lost:
                    numbers |= self._fit(site, Activations.pool(parts))
        if lost and not activations and set(lost.values()) == {_FROZEN}:
            raise _frozen(lost)
        return numbers, lost

    def _numbers(self, survey: Survey) -> Numbers:
        found: Numbers = {}
        for site, _, here in variants(survey.held):
            kinds = {kind: part for kind, part in here.items() if kind is not Tally}
            with one_blas_thread():
                summaries = finalize_all(kinds, intervals=False)
                for name in self.measures:
                    record = RECORDS[name]
                    for group, view in VIEWS[name].items():
                        options = {"controls": CONTROLS} if "controls" in record.options else {}
                        try:
                            value = record.compute(summaries.view(view), **options)
                        except (TooFewRowsError, UndefinedError):
                            continue
                        found[f"{name}-{group}" if group else name, site] = value
        return found

    def _fit(self, site: str, seen: Activations) -> Numbers:
        """Fit the proxy of a site; return how much of the one before it there is in it."""
        before = self.proxies.get(site)
        if before is not None and not self.follow:
            return {}
        self.proxies[site] = basis = fit_pca(
            seen.mean,
            seen.scatter,
            seen.rows,
            rank=self.rank,
            explained=self.explained,
            site=site,
        ).basis
        if before is None:
            return {}
        return {(MATCH, site): float(np.square(before.T @ basis).sum()) / basis.shape[1]}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the proxies by site, so that a run that is resumed goes on with them."""
        return {
            site: torch.from_numpy(np.ascontiguousarray(basis))
            for site, basis in self.proxies.items()
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over proxies."""
        self.proxies = {site: basis.double().numpy() for site, basis in state.items()}


class GradientTaps:
    """The sites of a model whose gradients are read, and listening to them in a pass."""

    def __init__(self, model: nn.Module, families: Sequence[str]) -> None:
        if not any(each.requires_grad for each in model.parameters()):
            raise _frozen({type(model).__name__: ""})
        self.listener = SiteListener(model, ["resid"])
        body = self.listener.body
        inputs = sample_inputs(as_loaded(body))
        maps = any(Site.parse(each).family == GRADW for each in families)
        with evaluating(body), torch.no_grad():
            sites = gradient_sites(
                self.listener.sites, lambda: body(**inputs) if maps else None
            )
        names = sites.select(families)
        self.widths = {name: sites.widths[name] for name in names}
        self.maps = [sites.taps[name] for name in names if Site.parse(name).family == GRADW]
        check_trained(body, [tap.module for tap in self.maps])
        self.listener.sites = sites
        self.listener.names = tuple(name for name in names if Site.parse(name).family != GRADW)

    @contextmanager
    def listening(self, step: "StepGradients") -> Generator[None]:
        """Let a step hear its first training pass."""
        body = self.listener.body

        def hear(_current: Pass | None, site: str, tensor: Tensor) -> None:
            step.hear_stream(site, tensor)

        with ExitStack() as stack:
            for tap in self.maps:
                handle = body.get_submodule(tap.module).register_forward_hook(
                    partial(_hear_map, step, tap), with_kwargs=True
                )
                stack.callback(handle.remove)
            stack.enter_context(
                self.listener.listening(hear, begin=step.begin, end=step.end, detach=False)
            )
            yield


def _hear_map(
    step: "StepGradients",
    tap: Tap,
    _module: nn.Module,
    inputs: tuple[object, ...],
    keywords: dict[str, object],
    output: object,
) -> None:
    """Let a step hear what a linear map receives and returns."""
    received, given = input_tensor(inputs, keywords), first_tensor(output)
    if received is not None and given is not None and not recomputing():
        step.hear_map(tap.site, received, given)


class StepGradients:
    """One training step: activations of its first pass, and the gradients that come back."""

    def __init__(self, proxies: Mapping[str, Array], name: str, seed: int) -> None:
        self.proxies, self.name = proxies, name
        self.sums = GradientSums(proxies, seed=seed)
        self.activations: dict[str, Activations] = {}
        self.lost: dict[str, str] = {}  # site: why it has no numbers
        self._pass: Pass | None = None  # under way
        self._over = False  # passes after the first one are not heard
        self._real: Tensor | None = None  # (B, T)
        self._back: set[str] = set()  # sites whose gradient has come

    def begin(self, current: Pass) -> None:
        """Begin a pass; one without gradients is not the step's.

        Lightning leaves models as they come, and those of transformers come in evaluation
        mode: it says nothing here.
        """
        if torch.is_grad_enabled() and not recomputing() and not self._over:
            self._pass = current

    def end(self, current: Pass, _complete: bool) -> None:
        """End the pass."""
        if current is self._pass:
            self._pass, self._over = None, True

    def hear_stream(self, site: str, tensor: Tensor) -> None:
        """Take the stream at a site, (B, T, d), and listen to its gradient."""
        if self._pass is None or tensor.ndim != 3:
            return
        if not tensor.requires_grad:
            self.lost[site] = _FROZEN
            return
        self._take(site, tensor)

        def report(gradient: Tensor) -> None:
            if self._is_new(site, gradient):
                self.sums.add(site, gradient)

        if site in self.proxies:
            tensor.register_hook(report)

    def hear_map(self, site: str, received: Tensor, given: Tensor) -> None:
        """Take what a linear map receives, and listen to the gradient of its output."""
        if self._pass is None or received.ndim != 3:
            return
        if not given.requires_grad:
            self.lost[site] = _FROZEN
            return
        received = received.detach()
        self._take(site, received)

        def report(delta: Tensor) -> None:
            if self._is_new(site, delta):
                self.sums.add_weights(site, received, delta)

        if site in self.proxies:
            given.register_hook(report)

    def _take(self, site: str, tensor: Tensor) -> None:
        """Sum the activations of a site, without padding."""
        detached = tensor.detach()
        with torch.no_grad(), torch.autocast(detached.device.type, enabled=False):
            if self._real is None:
                self._begin_batch(detached)
            assert self._real is not None
            if self._real.shape == detached.shape[:2]:
                rows = detached[self._real.to(detached.device)]
                if len(rows) and bool(torch.isfinite(rows).all()):
                    self.activations[site] = Activations.of(rows)
                elif len(rows):
                    self.lost[site] = "its activations are NaN or infinite"

    def _begin_batch(self, tensor: Tensor) -> None:
        assert self._pass is not None
        shape, mask = tensor.shape[:2], self._pass.mask
        if mask is None or mask.shape != shape:
            mask = torch.ones(shape, dtype=torch.bool)
        self._real = mask.bool().to(tensor.device)
        names = np.array([f"{self.name}:{number}" for number in range(len(tensor))])
        self.sums.begin(named_documents(names), self._real)

    def _is_new(self, site: str, gradient: Tensor) -> bool:
        """Whether a gradient is the first of its site, and finite."""
        if site in self._back:
            return False
        self._back.add(site)
        if not bool(torch.isfinite(gradient).all()):
            self.lost[site] = _NOT_FINITE
            return False
        return site not in self.lost

    def finish(self) -> tuple[Survey, dict[str, Activations], dict[str, str]]:
        """Return sums of gradients, activations, and why some sites have none."""
        for site in self.activations:
            if site in self.proxies and site not in self._back:
                self.lost.setdefault(site, _NONE)
        return self.sums.finish(), self.activations, self.lost


def _frozen(names: Mapping[str, str]) -> IsoscopeError:
    """Return the error for a model, or sites, whose gradient nobody computes."""
    return ConfigError(
        f"expected weights that are trained, got frozen ones: {', '.join(list(names)[:3])}",
        hint="no gradient comes to a site unless something before it is trained: watch later "
        "sites, or call requires_grad_() on the weights",
        slug="tangent-frozen",
    )
