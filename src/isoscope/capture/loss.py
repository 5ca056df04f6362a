"""The loss of a language model on a few documents, with and without bos before each."""

from collections.abc import Iterable, Iterator, Sequence
from math import log, sqrt
from typing import cast

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isoscope.capture.feed.base import Feed, Prepared, parameters
from isoscope.capture.feed.text import TextFeed, trial_tokens
from isoscope.capture.model.load import Loaded
from isoscope.capture.sites import token_matrices
from isoscope.capture.tap import first_tensor
from isoscope.dataclass import dataclass
from isoscope.site import UNEMBED
from isoscope.types import Array

TOKENS, FEWEST = 2000, 256  # that are predicted
SHARE = 0.05  # of a small survey, so that the check takes little of its time
LENGTH = 256  # tokens of a document: the logits of longer ones may not fit into memory
SLICE = 64  # positions whose probabilities are computed at once
BLOCK = 2**21  # logits that are in memory at once
CLEAR = 0.5  # nats per token that are no accident
ERRORS = 3.0  # standard errors of that difference


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """Nats per token, with and without bos before each document."""

    tokens: int  # that were predicted
    without_bos: float
    with_bos: float | None = None  # None where the tokenizer has no bos
    bos: str = ""
    used: bool = False  # whether the documents of the survey begin with it
    error: float = 0.0  # standard error of the difference, over documents
    chance: float  # the loss of a uniform guess

    @property
    def surveyed(self) -> float:
        """The loss of the documents as they are surveyed."""
        return self.with_bos if self.used and self.with_bos is not None else self.without_bos

    def line(self) -> str:
        """Return the loss in a sentence."""
        text = f"loss on the first {self.tokens:,} tokens, in nats per token: "
        if self.with_bos is None:
            return f"{text}{self.without_bos:.2f}"
        ways = [
            (self.used, f"{self.with_bos:.2f} with {self.bos} before each document"),
            (not self.used, f"{self.without_bos:.2f} without {self.bos}"),
        ]
        return text + ", ".join(way + " (as surveyed)" * here for here, way in ways)

    def warning(self) -> str:
        """Return what looks wrong with the tokens; nothing where they look right."""
        limit = self.chance + CLEAR
        best = min(each for each in (self.with_bos, self.without_bos) if each is not None)
        gain = self.surveyed - best
        if best <= limit and gain > max(CLEAR, ERRORS * self.error):
            how = "without" if self.used else "with"
            return (
                f"special tokens look wrong: the loss is {gain:.2f} nats lower {how} "
                f"{self.bos} before each document, and the survey reads them the other way"
            )
        if self.surveyed > limit:
            return (
                f"the loss is above that of a uniform guess, {self.chance:.2f}: the tokens may "
                "be those of another model"
            )
        return ""


def next_token_loss(
    loaded: Loaded, feed: Feed, documents: Iterable[Prepared], *, rows: int | None = None
) -> Loss | None:
    """Return the loss on the first documents, or None if the model is not causal.

    The tokens that are predicted are the same with and without bos: ordinary ones, from the
    second of each document on. They are 2,000, fewer in a survey of few `rows`.
    """
    if type(feed) is not TextFeed or not is_causal(loaded, feed):
        return None
    enough = TOKENS if rows is None else min(TOKENS, max(FEWEST, SHARE * rows))
    head = Head.of(loaded, feed)
    bos = feed.reader.bos
    used = bos is not None
    sums: list[tuple[float, float, int]] = []  # summed without bos, with it, and tokens
    for each in documents:
        ids, special = each.inputs["input_ids"], each.special[""]
        begins = ids[0] == bos
        part = slice(int(begins), int(begins) + min(LENGTH, feed.reader.limit - 1))
        ids, counted = ids[part], ~special[part]
        counted[:1] = False
        if not counted.any():
            continue
        used &= bool(begins)
        ways = [(ids, counted)]
        if bos is not None:
            ways.append((np.r_[bos, ids], np.r_[False, counted]))
        if head is None:
            summed = [_summed_loss(loaded, feed, *way) for way in ways]
        else:
            summed = head.summed_losses(loaded, feed, ways)
        without, with_bos = summed[0], summed[-1]
        sums.append((without, with_bos, int(counted.sum())))
        if sum(count for *_, count in sums) >= enough:
            break
    table = np.array(sums).reshape(-1, 3)
    if not len(table) or not np.isfinite(table).all():
        return None
    return _loss_of(table, loaded, feed, used)


def _loss_of(table: Array, loaded: Loaded, feed: TextFeed, used: bool) -> Loss:
    without, with_bos, counts = table.T
    total, documents, bos = counts.sum(), len(counts), feed.reader.bos
    change = with_bos - without
    spread = change - counts * change.sum() / total
    error = sqrt((spread**2).sum() * documents / max(documents - 1, 1)) / total
    chance = log(len(token_matrices(loaded.model)[UNEMBED]))
    if bos is None or loaded.tokenizer is None:
        return Loss(tokens=int(total), without_bos=float(without.sum() / total), chance=chance)
    return Loss(
        tokens=int(total),
        without_bos=float(without.sum() / total),
        with_bos=float(with_bos.sum() / total),
        bos=str(loaded.tokenizer.decode([bos])),
        used=used,
        error=float(error),
        chance=chance,
    )


def is_causal(loaded: Loaded, feed: TextFeed) -> bool:
    """Whether a model predicts tokens, and a position knows nothing of later ones.

    Found by trying: classes do not tell, as BertLMHeadModel may be either.
    """
    if UNEMBED not in token_matrices(loaded.model):
        return False
    ids = trial_tokens(feed.reader, min(8, feed.reader.limit)).ids
    other = ids.copy()
    other[-1] = ids[0]
    first, second = (_logits(loaded, feed, each) for each in (ids, other))
    if first is None or second is None or other[-1] == ids[-1]:
        return False
    bound = torch.finfo(first.dtype).eps ** 0.5
    return bool((first[:-1] - second[:-1]).norm() <= bound * first.norm())


def _logits(loaded: Loaded, feed: TextFeed, ids: Array) -> Tensor | None:
    """Return the logits at every position, (n, vocabulary); None if a model has none."""
    found = getattr(_run(loaded.model, feed, ids), "logits", None)
    return found[0] if isinstance(found, Tensor) and found.ndim == 3 else None


def _run(model: nn.Module, feed: TextFeed, ids: Array) -> object:
    """Return what a model, or its body, makes of one document."""
    tokens = torch.from_numpy(ids)[None].to(feed.device)
    inputs = {"input_ids": tokens}
    if "attention_mask" in parameters(model):
        inputs["attention_mask"] = torch.ones_like(tokens)
    with torch.inference_mode():
        return cast(object, model(**inputs))


@dataclass(frozen=True, eq=False)
class Head:
    """The matrix that makes logits of the states of a body, where that is all it takes.

    Logits are then computed for the tokens that count alone, and a part of the vocabulary at
    a time, instead of all of them as one tensor: of 256 tokens and a vocabulary of 262,144
    that would take 268 MB, several times over.
    """

    weight: Tensor  # (vocabulary, d)
    bias: Tensor | None  # (vocabulary,)

    @classmethod
    def of(cls, loaded: Loaded, feed: TextFeed) -> "Head | None":
        """Return the head; None where the model's own logits are others, as scaled ones are."""
        getter = getattr(loaded.model, "get_output_embeddings", None)
        module = getter() if callable(getter) else None
        weight = token_matrices(loaded.model)[UNEMBED]
        if not isinstance(module, nn.Linear) or loaded.body is loaded.model:
            return None
        head = cls(weight, module.bias)
        ids = trial_tokens(feed.reader, min(8, feed.reader.limit)).ids
        states, logits = head._states(loaded, feed, ids), _logits(loaded, feed, ids)
        if states is None or logits is None or weight.device != states.device:
            return None
        found = torch.cat([part for _, part in head._logits(states)], dim=1)
        gap = (found - logits.float()).norm()
        bound = torch.finfo(logits.dtype).eps ** 0.5
        return head if bool(gap <= bound * logits.float().norm()) else None

    @staticmethod
    def _states(loaded: Loaded, feed: TextFeed, ids: Array) -> Tensor | None:
        """Return the last states of a document, (n, d)."""
        found = first_tensor(_run(loaded.body, feed, ids))
        width = token_matrices(loaded.model)[UNEMBED].shape[1]
        fits = found is not None and found.shape == (1, len(ids), width)
        return found[0] if found is not None and fits else None

    def _logits(self, states: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield float32 logits of a part of the vocabulary after the other, and its begin."""
        step = max(BLOCK // max(len(states), 1), 1024)
        with torch.inference_mode():
            for start in range(0, len(self.weight), step):
                rows = self.weight[start : start + step]
                part = (states @ rows.T).float()
                if self.bias is not None:
                    part += self.bias[start : start + step]
                yield start, part

    def summed_losses(
        self, loaded: Loaded, feed: TextFeed, ways: Sequence[tuple[Array, Array]]
    ) -> list[float]:
        """Return the sum of -log p over the tokens that count of each way to read a document.

        All ways at once: the matrix is read from memory once for them.
        """
        kept: list[Tensor] = []
        for ids, counted in ways:
            states = self._states(loaded, feed, ids)
            assert states is not None
            kept.append(states[torch.from_numpy(np.flatnonzero(counted) - 1).to(states.device)])
        states = torch.cat(kept)
        wanted = torch.from_numpy(np.concatenate([ids[counted] for ids, counted in ways]))
        wanted = wanted.to(states.device)
        chosen = torch.empty(len(states), device=states.device)
        whole = torch.full((len(states),), -torch.inf, device=states.device)
        for start, part in self._logits(states):
            whole = torch.logaddexp(whole, part.logsumexp(dim=1))
            here = ((wanted >= start) & (wanted < start + part.shape[1])).nonzero()[:, 0]
            chosen[here] = part[here, wanted[here] - start]
        losses = (whole.double() - chosen.double()).split([len(each) for each in kept])
        return [float(each.sum()) for each in losses]


def _summed_loss(loaded: Loaded, feed: TextFeed, ids: Array, counted: Array) -> float:
    """Return the sum of -log p over the tokens that count."""
    logits = _logits(loaded, feed, ids)
    assert logits is not None
    places = torch.from_numpy(np.flatnonzero(counted)).to(logits.device)
    wanted = torch.from_numpy(ids).to(logits.device)
    parts = [
        cross_entropy(logits[part - 1].float(), wanted[part], reduction="sum")
        for part in places.split(SLICE)
    ]
    return float(torch.stack(parts).double().sum())
