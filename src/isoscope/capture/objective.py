"""Losses to differentiate: which positions have a target, and the gradient of the last states.

A loss is a sum over targets and no mean, so that the gradient of a token does not depend on
how many others are in its batch. (Contrastive losses depend on the batch by their nature.)
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from isoscope.capture.feed.base import Batch, Feed, Prepared
from isoscope.capture.feed.image import ImageFeed
from isoscope.capture.feed.reader import TokenSequence
from isoscope.capture.feed.sound import WhisperFeed
from isoscope.capture.feed.text import PairFeed, TextFeed
from isoscope.capture.loss import Head, is_causal
from isoscope.capture.model.load import Loaded
from isoscope.capture.model.pooling import Pooling
from isoscope.capture.sites import token_matrices
from isoscope.capture.tap import first_tensor
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, IsoscopeError, SourceError
from isoscope.hashing import hash_tuples
from isoscope.site import UNEMBED
from isoscope.types import Array

LossName = Literal["causal", "masked", "classification", "contrastive"]
LOSSES: tuple[LossName, ...] = get_args(LossName)
MASKED = 0.15  # of the ordinary tokens of a document, replaced by the mask token
SCALE = 20.0  # of cosines, as sentence-transformers train with
LOGITS = 1 << 22  # that are in memory at once
_MASKS, _SHUFFLES = 0x6D61736B, 0x73687566  # so that draws of one seed differ


@dataclass(frozen=True, eq=False)
class Targets:
    """What one micro-batch is to predict."""

    batch: Batch  # as the model receives it; masked tokens are replaced
    rows: Tensor | None  # (B, T) positions with a target; None: those that the head reads
    labels: Tensor  # (n,) one per target, in the order of rows or of documents
    tokens: Tensor  # (B, T) of the documents, also where they are masked

    @property
    def real(self) -> Tensor:
        """The positions of documents, (B, T); others are padding."""
        return self.batch.marks("", self.tokens.shape[1]).real


@dataclass(frozen=True, eq=False)
class Output:
    """What a forward pass ends with: tensors to start from, and their gradients."""

    value: float  # the loss, summed over targets
    start: Tensor  # of the graph
    gradient: Tensor | None  # of the loss with respect to it; None where it is the loss itself
    shuffled: tuple[Tensor, Tensor | None] | None  # the same under permuted targets
    rows: Tensor | None = None  # (B, T) positions that the loss reads, where targets do not say


class Objective(ABC):
    """A loss of a model: how its targets are made, and how the backward pass starts."""

    name: LossName

    @abstractmethod
    def targets(self, prepared: Sequence[Prepared], keys: Array) -> Targets:
        """Return the targets of a micro-batch; `keys` identify its documents."""

    @abstractmethod
    def forward(self, targets: Targets, shuffled: Tensor | None) -> Output:
        """Run the model, with gradients; `shuffled` are labels in another order."""

    def keys_of(self, keys: Array) -> Array:
        """Return the documents along the first axis of a batch."""
        return keys


def shuffle(labels: Tensor, seed: int, batch: int) -> Tensor:
    """Return labels of a micro-batch in a random order, the same in every process."""
    drawn = hash_tuples(_SHUFFLES, seed, batch, np.arange(len(labels), dtype=np.uint64))
    return labels[torch.from_numpy(np.argsort(drawn, kind="stable")).to(labels.device)]


def widen(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 or float64: a loss of half precision is none."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


class TokenObjective(Objective):
    """A loss over the vocabulary, at some positions."""

    def __init__(self, loaded: Loaded, feed: TextFeed) -> None:
        self.loaded, self.feed = loaded, feed
        with torch.inference_mode():
            found = Head.of(loaded, feed)
        # Weights that were cut out of the vocabulary in inference mode cannot be differentiated
        self.head = None if found is None else TokenHead(found.weight, found.bias)

    def forward(self, targets: Targets, shuffled: Tensor | None) -> Output:
        """Run the body, and the head at positions with a target alone where that is all."""
        rows, labels = targets.rows, targets.labels
        assert rows is not None
        if self.head is not None:
            states = first_tensor(cast(object, self.loaded.body(**targets.batch.inputs)))
            assert states is not None
            start = states[rows]  # (n, d)
            value, gradient = self.head.gradient(start.detach(), labels)
            swapped = None
            if shuffled is not None:
                swapped = start, self.head.relabel(gradient, labels, shuffled)
            return Output(value, start, gradient, swapped)
        output = self.loaded.model(**targets.batch.inputs)
        logits = widen(output.logits[rows])
        loss = cross_entropy(logits, labels, reduction="sum")
        other = None
        if shuffled is not None:
            other = cross_entropy(logits, shuffled, reduction="sum"), None
        return Output(float(loss.detach()), loss, None, other)


@dataclass(frozen=True, eq=False)
class TokenHead:
    """The matrix that makes logits: their loss, and its gradient by the states, in slices."""

    weight: Tensor  # (vocabulary, d)
    bias: Tensor | None

    def gradient(self, states: Tensor, labels: Tensor) -> tuple[float, Tensor]:
        """Return the summed loss and its gradient, (n, d): (p - onehot) W, row by row."""
        total, found = 0.0, torch.empty_like(states)
        step = max(1, LOGITS // len(self.weight))
        for start in range(0, len(states), step):
            part, wanted = states[start : start + step], labels[start : start + step, None]
            logits = part @ self.weight.T
            if self.bias is not None:
                logits += self.bias
            wide = widen(logits)
            largest = wide.logsumexp(dim=1, keepdim=True)
            total += float((largest - wide.gather(1, wanted)).double().sum())
            wide = wide.sub_(largest).exp_()
            wide.scatter_add_(1, wanted, wide.new_full(wanted.shape, -1.0))
            found[start : start + step] = wide.to(states.dtype) @ self.weight
        return total, found

    def relabel(self, gradient: Tensor, labels: Tensor, others: Tensor) -> Tensor:
        """Return the gradient with other labels: only the rows of the labels change."""
        return gradient + self.weight[labels] - self.weight[others]


class Causal(TokenObjective):
    """Each position predicts the next token of its document; the last one has no target."""

    name: LossName = "causal"

    def targets(self, prepared: Sequence[Prepared], keys: Array) -> Targets:
        """Return the next tokens."""
        batch = self.feed.batch(prepared)
        tokens = batch.inputs["input_ids"]
        real = batch.marks("", tokens.shape[1]).real
        rows = torch.zeros_like(real)
        rows[:, :-1] = real[:, :-1] & real[:, 1:]
        return Targets(batch, rows, tokens.roll(-1, dims=1)[rows], tokens)


class Masked(TokenObjective):
    """A share of the tokens is replaced by the mask token and predicted; others are no rows."""

    name: LossName = "masked"

    def __init__(self, loaded: Loaded, feed: TextFeed, seed: int) -> None:
        super().__init__(loaded, feed)
        self.seed = seed
        self.mask = int(getattr(loaded.tokenizer, "mask_token_id", None) or 0)

    def targets(self, prepared: Sequence[Prepared], keys: Array) -> Targets:
        """Mask tokens by a hash of document and position: at least one of each document."""
        batch = self.feed.batch(prepared)
        tokens = batch.inputs["input_ids"]
        marks = batch.marks("", tokens.shape[1])
        ordinary = (marks.real & ~marks.special).cpu().numpy()
        places = np.arange(tokens.shape[1], dtype=np.uint64)
        drawn = hash_tuples(_MASKS, self.seed, keys[:, None], places[None]) / 2.0**64
        drawn = np.where(ordinary, drawn, 2.0)
        least = drawn.min(axis=1, keepdims=True)
        chosen = ordinary & ((drawn < MASKED) | (drawn == least))
        rows = torch.from_numpy(chosen).to(tokens.device)
        replaced = torch.where(rows, tokens.new_full((), self.mask), tokens)
        fed = replace(batch, inputs={**batch.inputs, "input_ids": replaced})
        return Targets(fed, rows, tokens[rows], tokens)


class Classification(Objective):
    """Each document has a class; rows are the positions that the head reads."""

    name: LossName = "classification"

    def __init__(self, loaded: Loaded, feed: TextFeed, labels: "LabelReader") -> None:
        self.loaded, self.feed, self.labels = loaded, feed, labels

    def targets(self, prepared: Sequence[Prepared], keys: Array) -> Targets:
        """Return the classes of the documents."""
        batch = self.feed.batch(prepared)
        found = [self.labels.of(each.id) for each in prepared]
        labels = torch.tensor(found, device=self.feed.device)
        return Targets(batch, None, labels, batch.inputs["input_ids"])

    def forward(self, targets: Targets, shuffled: Tensor | None) -> Output:
        """Run the whole model."""
        output = self.loaded.model(**targets.batch.inputs)
        logits = widen(output.logits)
        loss = cross_entropy(logits, targets.labels, reduction="sum")
        other = None
        if shuffled is not None:
            other = cross_entropy(logits, shuffled, reduction="sum"), None
        return Output(float(loss.detach()), loss, None, other)


class LabelReader:
    """The classes of documents as a model numbers them."""

    def __init__(self, loaded: Loaded) -> None:
        config = getattr(loaded.model, "config", None)
        names = dict(getattr(config, "label2id", None) or {})
        self.numbers = {str(name): int(number) for name, number in names.items()}
        self.classes = int(getattr(config, "num_labels", len(self.numbers)))
        self.known: dict[str, int] = {}  # by document

    def see(self, document: str, label: str | None) -> None:
        """Remember the class of a document."""
        if label is None:
            raise SourceError(
                f"expected a class for every document, got none for {document!r}",
                hint="--label names the column with the classes",
                slug="tangent-labels",
            )
        number = self.numbers.get(label, int(label) if label.isdecimal() else -1)
        if not 0 <= number < self.classes:
            known = ", ".join(list(self.numbers)[:5])
            raise SourceError(
                f"expected one of {self.classes} classes, got {label!r} for {document!r}",
                hint=f"the model knows {known}; or their numbers from 0",
                slug="tangent-labels",
            )
        self.known[document] = number

    def of(self, document: str) -> int:
        """Return the class of a document."""
        return self.known[document]


class Contrastive(Objective):
    """The first half of each document is to find its second half among those of the batch.

    What embedding models are trained with: cosines of pooled vectors times 20, as logits.
    """

    name: LossName = "contrastive"

    def __init__(self, loaded: Loaded, feed: TextFeed) -> None:
        self.loaded, self.feed = loaded, feed
        self.pooling = loaded.pooling or Pooling()

    def keys_of(self, keys: Array) -> Array:
        """Return each document twice: its halves stand side by side."""
        return np.concatenate([keys, keys])

    def targets(self, prepared: Sequence[Prepared], keys: Array) -> Targets:
        """Return first halves and then second halves."""
        halves = [_halve(each, self.feed) for each in prepared]
        sides = [first for first, _ in halves] + [second for _, second in halves]
        batch = self.feed.batch(sides)
        labels = torch.arange(len(prepared), device=self.feed.device)
        return Targets(batch, None, labels, batch.inputs["input_ids"])

    def forward(self, targets: Targets, shuffled: Tensor | None) -> Output:
        """Run the body, pool, and compare every first half with every second one."""
        states = first_tensor(cast(object, self.loaded.body(**targets.batch.inputs)))
        assert states is not None
        mask = targets.real
        vectors = normalize(self.pooling.pool(states, mask), dim=-1)
        first, second = vectors.chunk(2)
        logits = SCALE * widen(first @ second.T)
        loss = cross_entropy(logits, targets.labels, reduction="sum")
        other = None
        if shuffled is not None:
            other = cross_entropy(logits, shuffled, reduction="sum"), None
        return Output(float(loss.detach()), loss, None, other, mask)


def _halve(prepared: Prepared, feed: TextFeed) -> tuple[Prepared, Prepared]:
    """Return two documents: each has half of the ordinary tokens, and all special ends."""
    types = prepared.inputs.get("token_type_ids")
    tokens = TokenSequence(
        prepared.inputs["input_ids"], prepared.special[""], types, prepared.truncated
    )
    begin, end = tokens.ends()
    middle = (begin + end) // 2
    ends = np.arange(len(tokens.ids))
    first = tokens.only(np.r_[ends[:begin], ends[begin:middle], ends[end:]])
    second = tokens.only(np.r_[ends[:begin], ends[middle:end], ends[end:]])
    sides = (feed.of_tokens(prepared.id, each) for each in (first, second))
    one, other = (replace(each, key=prepared.key) for each in sides)
    return one, other


def fitting_losses(loaded: Loaded, feed: Feed) -> tuple[LossName, ...]:
    """Return the losses that a model has what it takes for, the usual one first."""
    if type(feed) is not TextFeed:
        return ()
    found: list[LossName] = []
    if UNEMBED in token_matrices(loaded.model):
        with torch.inference_mode():
            causal = is_causal(loaded, feed)
        if causal:
            found.append("causal")
        elif getattr(loaded.tokenizer, "mask_token_id", None) is not None:
            found.append("masked")
    if _classifies(loaded, feed):
        found.append("classification")
    if "causal" not in found:
        found.append("contrastive")
    return tuple(found)


def _classifies(loaded: Loaded, feed: TextFeed) -> bool:
    """Whether a model gives one row of logits for a document."""
    batch = feed.batch([feed.trial(4)])
    try:
        with torch.inference_mode():
            logits = getattr(loaded.model(**batch.inputs), "logits", None)
    except (TypeError, ValueError, RuntimeError):
        return False
    return isinstance(logits, Tensor) and logits.ndim == 2 and logits.shape[1] > 1


def open_objective(
    loaded: Loaded, feed: Feed, name: str | None, *, seed: int = 0, labels: LabelReader | None
) -> Objective:
    """Return the loss that is named, or the usual one of the model; refuse one without a head.

    Encoder-decoders, sounds and images have none here.
    """
    fitting = fitting_losses(loaded, feed)
    if not fitting or type(feed) is not TextFeed:
        raise ConfigError(
            f"expected a decoder or an encoder of text, got {loaded.name}, {_other_kind(feed)}",
            hint="no loss fits it; models of one stack have causal, masked, classification or "
            "contrastive ones",
            slug="tangent-loss",
        )
    if name is not None and name not in LOSSES:
        raise ConfigError(
            f"no loss is called {name!r}",
            hint=f"choose one of {', '.join(LOSSES)}; of {loaded.name}, {fitting[0]} fits",
            slug="tangent-loss",
        )
    chosen = fitting[0] if name is None else name
    if chosen not in fitting:
        raise ConfigError(
            f"cannot compute a {chosen} loss of {loaded.name}: {_missing(chosen)}",
            hint=f"--loss={fitting[0]} fits this model",
            slug="tangent-loss",
        )
    if chosen == "causal":
        return Causal(loaded, feed)
    if chosen == "masked":
        return Masked(loaded, feed, seed)
    if chosen == "classification":
        if labels is None:
            raise ConfigError(
                f"a classification loss of {loaded.name} needs classes, got none",
                hint="--label names the column of the corpus with the class of each document",
                slug="tangent-labels",
            )
        return Classification(loaded, feed, labels)
    return Contrastive(loaded, feed)


def _other_kind(feed: Feed) -> str:
    """Say what a model is that no loss fits."""
    if isinstance(feed, PairFeed | WhisperFeed):
        return "an encoder-decoder"
    if isinstance(feed, TextFeed):
        return "which reads characters and shortens them"
    return "a model of images" if isinstance(feed, ImageFeed) else "a model of sounds"


def _missing(name: str) -> str:
    words = {
        "causal": "it has no head over the tokens, or its positions see later ones",
        "masked": "it has no head over the tokens, no mask token, or reads from left to right",
        "classification": "it has no head that gives each document a class",
        "contrastive": "it reads from left to right and is not trained to embed texts",
    }
    return words[name]


def check_trained(model: nn.Module, names: Sequence[str]) -> None:
    """Refuse weights that are frozen: training gives them no gradient."""
    frozen = [name for name in names if not model.get_submodule(name).weight.requires_grad]
    if frozen:
        raise IsoscopeError(
            f"expected weights that are trained, got frozen ones: {', '.join(frozen[:3])}",
            hint="choose sites of weights that require gradients",
            slug="tangent-frozen",
        )
