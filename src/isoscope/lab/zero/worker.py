"""What a norm dimension does (Timkey, Kovaleva): the output distribution without it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, log
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate import Directions
from isoscope.accumulate.survey import Survey, variants
from isoscope.capture.feed import Batch, feed_for
from isoscope.engine import Notify
from isoscope.engine.base import Scratch, Ticks
from isoscope.errors import ConfigError, UndefinedError
from isoscope.lab.batches import batched, prepared_of
from isoscope.lab.dimensions.outliers import shares_of
from isoscope.lab.norm.masked import chosen_norms, masked
from isoscope.lab.plain import Plain
from isoscope.lab.zero.spec import Documents, ZeroPlan, ZeroSpec
from isoscope.measures.interval import LEAST_DOCUMENTS, around, standard_error
from isoscope.site import UNEMBED
from isoscope.store.state import State
from isoscope.study.keywords import call
from isoscope.study.model import ModelSites, open_documents, open_model
from isoscope.study.passes import ListenerOptions, SiteKinds, first_pass
from isoscope.study.plan import Packed
from isoscope.study.run import Finished, Live
from isoscope.study.spec import EngineOptions
from isoscope.types import Array


@dataclass(frozen=True)
class ZeroedDimension(Plain):
    """One dimension of the norms, and how far the output is from what it was without it."""

    index: int
    chosen: str  # "top" by its share of the mean cosine, "random", or "given"
    share: float | None  # of the mean cosine of the final norm's output on these documents
    kl: float  # nats a token, KL(as shipped || zeroed)
    low: float | None  # 95 % interval over documents
    high: float | None


@dataclass(frozen=True)
class ZeroedKL(Plain):
    """The change of the output distribution, dimension by dimension."""

    norms: list[str]
    documents: int
    tokens: int
    d: int
    dimensions: list[ZeroedDimension]
    model: str = field(default="", metadata={"told": False})

    def mean(self, chosen: str) -> float:
        """Return the mean over the dimensions that were chosen in one way."""
        return float(np.mean([each.kl for each in self.dimensions if each.chosen == chosen]))


def zeroed_kl(
    model: Any,
    corpus: Any = None,
    *,
    dimensions: Sequence[int] | None = None,
    random: int | None = None,
    **options: Any,
) -> ZeroedKL:
    """Return the mean KL over tokens when one dimension of norms is zeroed.

    Zeroed are gain and bias of the dimension: of the final norm, of all norms of the last
    N blocks (Timkey: 4), or of norms by name. Without `dimensions`, those with the largest
    share of the mean cosine at the final norm are taken, and three random others to compare
    with; beside given ones there are none unless `random` says how many.
    The model is left as it was: nothing is written to its weights. The options are those of
    `ZeroSpec`.
    """
    if random is None:
        random = 3 if dimensions is None else 0
    options |= {"dimensions": dimensions, "random": random}
    return call(ZeroSpec, (model, corpus), options, EngineOptions)


class BatchRecord(msgspec.Struct, frozen=True):
    """What the unit of a batch has found."""

    sums: list[list[float]]  # divergence of each document, dimension by dimension
    counts: list[int]  # tokens of each document


class ZeroWorker:
    """A loaded model and an open corpus."""

    def __init__(self, spec: ZeroSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        self.subject = open_model(spec.load, live=live.get("model"), say=notify.say)
        _predicts(self.subject)
        self.norms = chosen_norms(self.subject, _norms(spec.norms))
        self.corpus = open_documents(spec.read, live.get("corpus"))
        self.feed = feed_for(self.subject.loaded, length=spec.length)

    def content(self) -> dict[str, str]:
        """Return nothing: what is found is not written to a folder."""
        return {}

    def plan(self) -> ZeroPlan:
        """Draw documents, choose dimensions, and cut the documents into batches."""
        spec = self.spec
        found = prepared_of(self.corpus, self.feed, documents=spec.documents, seed=spec.seed)
        ready = [each for _, each in found]
        width = self.subject.sites.widths[self.subject.site("embed")]
        shares = _shares(self.subject, list(batched(ready, self.feed, spec.batch)))
        chosen = _chosen(spec.dimensions, shares, width, spec.top, spec.random, spec.seed)
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
            shares=tuple(_share(shares, index) for index in chosen),
            d=width,
            model=self.subject.loaded.name,
        )

    def enter(self, plan: object, stage: int, before: State | None) -> None:
        """Take the plan."""
        _ = stage, before
        assert isinstance(plan, ZeroPlan)
        self.planned = plan

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> BatchRecord:
        """Return the divergence of each document without each dimension."""
        _ = scratch
        assert isinstance(unit, Documents)
        ordinals = self.planned.ordinals.array[unit.first : unit.last].tolist()
        ready = [self.feed.prepare(self.corpus.document(each)) for each in ordinals]
        batch = self.feed.batch([each for each in ready if each is not None])
        plain, counts = _log_probabilities(self.subject, batch)
        sums: list[list[float]] = []
        for number, index in enumerate(self.planned.dimensions):
            with masked(self.subject.sites.body, self.norms, index):
                changed, _ = _log_probabilities(self.subject, batch)
            sums.append([_divergence(p, q) for p, q in zip(plain, changed, strict=True)])
            ticks.at(number + 2)
        return BatchRecord(sums, counts)

    def finish(self, done: Finished) -> ZeroedKL:
        """Return the mean divergence of each dimension, with its interval."""
        records = msgspec.convert(done.records, list[BatchRecord])
        return summarise(done.plan_as(ZeroPlan), records)


def summarise(plan: ZeroPlan, records: Sequence[BatchRecord]) -> ZeroedKL:
    """Return the mean over all tokens of all batches, dimension by dimension."""
    counts = np.concatenate([np.array(each.counts, dtype=float) for each in records])
    sums = np.zeros((len(plan.dimensions), len(counts)))
    if plan.dimensions:
        sums = np.concatenate([np.array(each.sums) for each in records], axis=1)
    return ZeroedKL(
        norms=list(plan.norms),
        documents=len(counts),
        tokens=int(counts.sum()),
        d=plan.d,
        dimensions=[
            ZeroedDimension(index, how, share, *_mean(sums[number], counts))
            for number, (index, how, share) in enumerate(
                zip(plan.dimensions, plan.chosen, plan.shares, strict=True)
            )
        ],
        model=plan.model,
    )


def _norms(names: Sequence[str]) -> str | int | list[str]:
    """Return norms as they are meant: final, a number of blocks, or names."""
    if len(names) != 1:
        return list(names)
    one = names[0]
    return int(one) if one.isascii() and one.isdigit() else one


def _predicts(subject: ModelSites) -> None:
    if UNEMBED not in subject.sites.weights:
        kind = type(subject.loaded.model).__name__
        raise UndefinedError(
            f"expected a model that predicts tokens, got {kind}, which has no such head",
            hint="KL is between distributions over tokens; take a checkpoint with a "
            "language-model head (ForCausalLM, ForMaskedLM)",
            slug="no-output-distribution",
        )


def _log_probabilities(subject: ModelSites, batch: Batch) -> tuple[list[Tensor], list[int]]:
    """Return log p over tokens at the real positions of each document, and their numbers."""
    with torch.inference_mode():
        logits = subject.loaded.model(**batch.inputs).logits
        real = batch.marks(subject.last, logits.shape[1]).real.to(logits.device)
        found = [
            torch.log_softmax(one[mask].double(), dim=-1)
            for one, mask in zip(logits, real, strict=True)
        ]
    return found, [len(each) for each in found]


def _divergence(plain: Tensor, changed: Tensor) -> float:
    """Return the sum over positions of KL(plain || changed)."""
    p = plain.exp()
    # A token that never comes adds nothing, and minus infinity twice is no number.
    return float(torch.where(p > 0, p * (plain - changed), 0.0).sum())


def _shares(subject: ModelSites, batches: Sequence[Batch]) -> Array | None:
    """Return each dimension's share of the mean cosine at the final norm's output."""
    site = subject.site("norm", "out")
    if site not in subject.sites.taps:
        return None
    survey = Survey()
    kinds = SiteKinds(["mean-cosine"], causes=False)
    listener = first_pass(survey, kinds, ListenerOptions(sinks=inf, seed=0))
    for batch in batches:
        listener.begin(batch)
        with (
            subject.sites.listening([site], listener.hear) as calls,
            torch.inference_mode(),
        ):
            calls.restart()
            subject.loaded.body(**batch.inputs)
    for _, alike, here in variants(survey.held):
        if "all" in alike:
            return shares_of(here[Directions].finalize())
    return None


def _chosen(
    given: Sequence[int] | None,
    shares: Array | None,
    width: int,
    top: int,
    random: int,
    seed: int,
) -> dict[int, str]:
    if given is not None:
        bad = [index for index in given if not 0 <= index < width]
        if bad or not len(given):
            raise ConfigError(
                f"expected dimensions from 0 to {width - 1}, got {bad[0] if bad else 'none'}",
                hint="dimensions are counted from 0",
                slug="dimension-range",
            )
    found = {int(index): "given" for index in given or ()}
    if given is None and shares is not None and np.isfinite(shares).all():
        found = {int(i): "top" for i in np.argsort(-shares, kind="stable")[:top]}
    rng = np.random.Generator(np.random.PCG64([seed, width]))
    others = [int(i) for i in rng.permutation(width) if int(i) not in found]
    return found | dict.fromkeys(others[:random], "random")


def _mean(sums: Array, counts: Array) -> tuple[float, float | None, float | None]:
    """Return the mean over all tokens, with its interval over documents."""
    value = float(sums.sum() / counts.sum())
    if len(counts) < LEAST_DOCUMENTS:
        return value, None, None
    without = (sums.sum() - sums) / (counts.sum() - counts)
    if value > 0 and (without > 0).all():  # in the logarithm: it cannot fall below zero
        error = standard_error(log(value), np.log(without), counts)
        return (value, *around(value, error, len(counts), logarithmic=True))
    error = standard_error(value, without, counts)
    return (value, *around(value, error, len(counts), logarithmic=False))


def _share(shares: Array | None, index: int) -> float | None:
    return None if shares is None or not np.isfinite(shares[index]) else float(shares[index])
