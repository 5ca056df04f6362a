"""What a norm dimension does (Timkey, Kovaleva): the output distribution without it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate import Block, Directions
from isoscope.capture.feed import Batch, feed_for
from isoscope.errors import ConfigError, UndefinedError
from isoscope.lab.batches import batched, corpus_of, prepared_of
from isoscope.lab.masked_norm import FINAL, chosen_norms, masked
from isoscope.lab.outlier_dimensions import shares_of
from isoscope.lab.plain import Plain
from isoscope.lab.subject import Subject, subject_of
from isoscope.measure.interval import LEAST_DOCUMENTS, around, standard_error
from isoscope.site import UNEMBED
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

    def mean(self, chosen: str) -> float:
        """Return the mean over the dimensions that were chosen in one way."""
        return float(np.mean([each.kl for each in self.dimensions if each.chosen == chosen]))


def zeroed_kl(
    model: Any,
    corpus: Any = None,
    *,
    norms: str | int | Sequence[str] = FINAL,
    dimensions: Sequence[int] | None = None,
    top: int = 3,
    random: int | None = None,
    documents: int = 16,
    length: int = 128,
    batch: int = 4,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    **given: Any,
) -> ZeroedKL:
    """Return the mean KL over tokens when one dimension of norms is zeroed.

    Zeroed are gain and bias of the dimension: of the final norm, of all norms of the last
    so many blocks (Timkey: 4), or of norms by name. Without `dimensions`, those with the
    largest share of the mean cosine at the final norm are taken, and three random others to
    compare with; beside given ones there are random ones if `random` says how many. The
    model is left as it was: nothing is written to its weights. `progress` is told how many
    passes are done, and of how many.
    """
    subject = subject_of(model, **given)
    _predicts(subject)
    wanted = chosen_norms(subject, norms)
    opened = corpus_of(corpus)
    feed = feed_for(subject.loaded, length=length)
    ready = [each for _, each in prepared_of(opened, feed, documents=documents, seed=seed)]
    batches = list(batched(ready, feed, batch))
    width = subject.sites.widths[subject.site("embed")]
    shares = _shares(subject, batches)
    if random is None:
        random = 3 if dimensions is None else 0
    chosen = _chosen(dimensions, shares, width, top, random, seed)
    passes = len(batches) * (1 + len(chosen))
    if progress is not None:
        progress(0, passes)
    sums = np.zeros((len(chosen), len(ready)))
    counts = np.zeros(len(ready))
    start = 0
    for number_of_batch, each in enumerate(batches):
        here = slice(start, start + len(each.documents))
        plain, counts[here] = _log_probabilities(subject, each)
        for number, index in enumerate(chosen):
            with masked(subject.sites.body, wanted, index):
                changed, _ = _log_probabilities(subject, each)
            sums[number, here] = [
                _divergence(p, q) for p, q in zip(plain, changed, strict=True)
            ]
            if progress is not None:
                progress(number_of_batch * (1 + len(chosen)) + number + 2, passes)
        start += len(each.documents)
    return ZeroedKL(
        norms=wanted,
        documents=len(ready),
        tokens=int(counts.sum()),
        d=width,
        dimensions=[
            ZeroedDimension(index, how, _share(shares, index), *_mean(sums[number], counts))
            for number, (index, how) in enumerate(chosen.items())
        ],
    )


def _predicts(subject: Subject) -> None:
    if UNEMBED not in subject.sites.weights:
        kind = type(subject.loaded.model).__name__
        raise UndefinedError(
            f"expected a model that predicts tokens, got {kind}, which has no such head",
            hint="KL is between distributions over tokens; take a checkpoint with a "
            "language-model head (ForCausalLM, ForMaskedLM)",
            slug="no-output-distribution",
        )


def _log_probabilities(subject: Subject, batch: Batch) -> tuple[list[Tensor], list[int]]:
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


def _shares(subject: Subject, batches: Sequence[Batch]) -> Array | None:
    """Return each dimension's share of the mean cosine at the final norm's output."""
    site = subject.site("norm", "out")
    if site not in subject.sites.taps:
        return None
    seen = Directions(subject.sites.widths[site])
    count = 0
    for batch in batches:
        heard: list[Tensor] = []
        with (
            subject.sites.listening(
                [site], lambda _, tensor, heard=heard: heard.append(tensor.clone())
            ) as calls,
            torch.inference_mode(),
        ):
            calls.restart()
            subject.loaded.body(**batch.inputs)
        real = batch.marks(subject.last, heard[0].shape[1]).real.to(heard[0].device)
        rows = heard[0][real].float().cpu().numpy()
        seen.update(Block(rows, start=count))
        count += len(rows)
    return shares_of(seen.finalize())


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
