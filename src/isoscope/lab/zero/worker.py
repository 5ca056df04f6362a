"""What a norm dimension does (Timkey, Kovaleva): the output distribution without it."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager
from math import inf, isfinite, log

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from isoscope.accumulate import Directions
from isoscope.accumulate.survey import Survey, variants
from isoscope.capture.feed import Batch, Feed, feed_for
from isoscope.capture.norm import is_norm
from isoscope.capture.runner import Runner
from isoscope.capture.stacks import find_stacks
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.plan import Packed
from isoscope.errors import ConfigError, UndefinedError
from isoscope.lab.norm.parameters import no_final_norm
from isoscope.lab.zero.results import Conditions, ZeroedDimension, results_of
from isoscope.lab.zero.spec import FINAL, Documents, ZeroPlan, ZeroSpec
from isoscope.measures.interval import LEAST_DOCUMENTS, around, standard_error
from isoscope.registry import check_names
from isoscope.site import UNEMBED
from isoscope.store.state import State
from isoscope.study.model import ModelSites, open_documents, open_model
from isoscope.study.passes import ListenerOptions, SiteKinds, first_pass
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.saved_runs import summary_of
from isoscope.study.selection import batches_of, prepare_documents
from isoscope.types import Array

RANDOM = "random"


class BatchRecord(msgspec.Struct, frozen=True):
    """The result of one batch."""

    sums: list[list[float]]  # divergence of each document, dimension by dimension
    counts: list[int]  # tokens of each document


class ZeroWorker(Planner[Results[ZeroedDimension]]):
    """A loaded model and an open corpus."""

    def __init__(self, spec: ZeroSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        self.subject = open_model(spec.load, live=live.get("model"), say=notify.say)
        if UNEMBED not in self.subject.sites.weights:
            kind = type(self.subject.loaded.model).__name__
            raise UndefinedError(
                f"expected a model that predicts tokens, got {kind}, which has no such head",
                hint="KL is between distributions over tokens; take a checkpoint with a "
                "language-model head (ForCausalLM, ForMaskedLM)",
                slug="no-output-distribution",
            )
        self.norms = find_norms(self.subject, spec.norms)
        self.corpus = open_documents(spec.read, live.get("corpus"))
        self.feed = feed_for(self.subject.loaded, length=spec.length)

    def plan(self) -> ZeroPlan:
        """Draw documents, choose dimensions, and cut the documents into batches."""
        spec = self.spec
        found = prepare_documents(
            self.corpus, self.feed, documents=spec.documents, seed=spec.seed
        )
        ready = [each for _, each in found]
        width = self.subject.sites.widths[self.subject.site("embed")]
        shares = _shares(self.subject, self.feed, batches_of(ready, self.feed, spec.batch))
        chosen = choose_dimensions(spec, shares, width)
        step = spec.batch if self.feed.mixes_lengths else 1
        units = [
            Documents(first, min(first + step, len(ready)))
            for first in range(0, len(ready), step)
        ]
        return ZeroPlan(
            stages=(tuple(units),),
            norms=tuple(self.norms),
            ordinals=Packed.of(np.array([ordinal for ordinal, _ in found], dtype=np.int64)),
            dimensions=tuple(chosen),
            chosen=tuple(chosen.values()),
            shares=tuple(
                None
                if shares is None or not np.isfinite(shares[index])
                else float(shares[index])
                for index in chosen
            ),
            d=width,
            model=self.subject.loaded.name,
        )

    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, ZeroPlan)
        self.planned = plan

    def run(self, unit: object, _scratch: Scratch, ticks: Ticks, /) -> BatchRecord:
        """Return the divergence of each document without each dimension."""
        assert isinstance(unit, Documents)
        ordinals = self.planned.ordinals.array[unit.first : unit.last].tolist()
        ready = [self.feed.prepare(self.corpus.document(each)) for each in ordinals]
        batch = self.feed.batch([each for each in ready if each is not None])
        plain = _log_probabilities(self.subject, batch)
        sums: list[list[float]] = []
        for number, index in enumerate(self.planned.dimensions):
            with zero_dimension(self.subject.sites.body, self.norms, index):
                changed = _log_probabilities(self.subject, batch)
            sums.append([_divergence(p, q) for p, q in zip(plain, changed, strict=True)])
            ticks.at(number + 2)
        return BatchRecord(sums, list(map(len, plain)))

    def finish(self, done: Finished) -> Results[ZeroedDimension]:
        """Return the mean divergence of each dimension, with its interval."""
        plan, records = done.plan_as(ZeroPlan), msgspec.convert(done.records, list[BatchRecord])
        counts = np.array([count for each in records for count in each.counts], dtype=float)
        parts = [np.array(each.sums) for each in records]  # (dimensions, documents) each
        sums = np.concatenate(parts, axis=1) if plan.dimensions else ()
        means = [_mean(each, counts) for each in sums]
        usual = [mean[0] for mean, how in zip(means, plan.chosen, strict=True) if how == RANDOM]
        random = sum(usual) / len(usual) if usual else 0.0
        times = [mean[0] / random if random > 0 else inf for mean in means]
        found = [
            ZeroedDimension(index, how, share, *mean, ratio if isfinite(ratio) else None)
            for index, how, share, mean, ratio in zip(
                plan.dimensions, plan.chosen, plan.shares, means, times, strict=True
            )
        ]
        sizes = len(counts), int(counts.sum())
        return results_of(found, Conditions(plan.model, plan.norms, *sizes, plan.d))


@contextmanager
def zero_dimension(body: nn.Module, norms: Sequence[str], dimension: int) -> Generator[None]:
    """Zero one dimension of the output of norms: the same as a gain and a bias of zero there.

    Done by hooks that are removed however the block ends. No parameter is written, not even
    for a moment, so there is nothing to be put back.
    """

    def hook(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        changed = output.clone()
        changed[..., dimension] = 0
        return changed

    with ExitStack() as stack:
        for name in norms:
            stack.callback(body.get_submodule(name).register_forward_hook(hook).remove)
        yield


def find_norms(subject: ModelSites, norms: Sequence[str]) -> list[str]:
    """Return names of norms: the final one, all of the last N blocks, or those named.

    The norms of a block are those as wide as the stream, so not those of queries and keys.
    """
    if len(norms) == 1 and norms[0].isascii() and norms[0].isdigit():
        return _norms_of_blocks(subject, int(norms[0]))
    if list(norms) == [FINAL]:
        tap = subject.sites.taps.get(subject.site("norm", "in"))
        if tap is None:
            raise no_final_norm(subject.loaded.name)
        return [tap.module]
    known = [name for name, module in subject.sites.body.named_modules() if is_norm(module)]
    check_names("norm", norms, known)
    return list(norms)


def _norms_of_blocks(subject: ModelSites, count: int) -> list[str]:
    body = subject.sites.body
    stack = next(each for each in find_stacks(body) if each.name == subject.last)
    if not 1 <= count <= len(stack.blocks):
        raise ConfigError(
            f"expected 1 to {len(stack.blocks)} blocks, got {count}",
            hint="name at most as many blocks as the model has",
            slug="number-range",
        )
    width = subject.sites.widths[subject.site("embed")]
    return [
        f"{block}.{name}"
        for block in stack.blocks[-count:]
        for name, module in body.get_submodule(block).named_modules()
        if is_norm(module) and {each.numel() for each in module.parameters()} <= {width}
    ]


def _log_probabilities(subject: ModelSites, batch: Batch) -> list[Tensor]:
    """Return log p over tokens at the real positions of each document."""
    with torch.inference_mode():
        output = subject.loaded.model(**batch.inputs)
        # models for pretraining have two heads
        logits = output.logits if hasattr(output, "logits") else output.prediction_logits
        real = batch.marks(subject.last, logits.shape[1]).real.to(logits.device)
        return [
            torch.log_softmax(one[mask].double(), dim=-1)
            for one, mask in zip(logits, real, strict=True)
        ]


def _divergence(plain: Tensor, changed: Tensor) -> float:
    """Return the sum over positions of KL(plain || changed)."""
    p = plain.exp()
    # A token of probability zero adds nothing, and the difference of two infinities is NaN.
    return float(torch.where(p > 0, p * (plain - changed), 0.0).sum())


def _shares(subject: ModelSites, feed: Feed, batches: Iterable[Batch]) -> Array | None:
    """Return each dimension's share of the mean cosine at the final norm's output."""
    site = subject.site("norm", "out")
    if site not in subject.sites.taps:
        return None
    survey = Survey()
    kinds = SiteKinds(["mean-cosine"], causes=False)
    listener = first_pass(survey, kinds, ListenerOptions(sinks=inf, seed=0))
    runner = Runner(subject.loaded.body, subject.sites, feed)
    for batch in batches:
        runner.pass_through(batch, [site], listener)
    for _, alike, here in variants(survey.held):
        if "all" in alike:
            seen = summary_of(here, Directions)
            return None if seen is None else seen.finalize().shares
    return None


def choose_dimensions(spec: ZeroSpec, shares: Array | None, width: int) -> dict[int, str]:
    """Return the dimensions to zero, and how each was chosen."""
    named = spec.dimensions
    if named is not None:
        bad = [index for index in named if not 0 <= index < width]
        if bad or not named:
            raise ConfigError(
                f"expected dimensions from 0 to {width - 1}, got {bad[0] if bad else 'none'}",
                hint="dimensions are counted from 0",
                slug="dimension-range",
            )
    found = dict.fromkeys(named or (), "given")
    if named is None and shares is not None and np.isfinite(shares).all():
        found = {int(i): "top" for i in np.argsort(-shares, kind="stable")[: spec.top]}
    rng = np.random.Generator(np.random.PCG64([spec.seed, width]))
    others = [int(i) for i in rng.permutation(width) if int(i) not in found]
    return found | dict.fromkeys(others[: spec.random], RANDOM)


def _mean(sums: Array, counts: Array) -> tuple[float, float | None, float | None]:
    """Return the mean over all tokens, with its interval over documents."""
    value = float(sums.sum() / counts.sum())
    if len(counts) < LEAST_DOCUMENTS:
        return value, None, None
    without = (sums.sum() - sums) / (counts.sum() - counts)
    positive = value > 0 and bool((without > 0).all())
    # in the logarithm it cannot fall below zero
    scaled = (log(value), np.log(without)) if positive else (value, without)
    error = standard_error(*scaled, counts)
    return (value, *around(value, error, len(counts), logarithmic=positive))
