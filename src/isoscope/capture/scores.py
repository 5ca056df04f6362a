"""Scores as the softmax of attention receives them, and what a query makes of its keys.

Either the factors are known (queries, keys, scale and mask of a fused product) and only the
rows of some queries are computed, or a model computes all scores itself and rows are taken.
"""

from typing import Protocol

import torch
from torch import Tensor

from isoscope.dataclass import dataclass

# No score of a model that works is as low. Masks add -1e4, -1e9, the least float or -inf.
HIDDEN = -5e3
ROOM = 1 << 21  # scores that are in memory at once


class Scores(Protocol):
    """The scores of a call of attention."""

    @property
    def heads(self) -> int:
        """The number of heads."""
        ...

    @property
    def keys(self) -> int:
        """The number of keys."""
        ...

    @property
    def scale(self) -> float | None:
        """What dot products are multiplied with; None where that is not known."""
        ...

    def rows(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the scores of queries at (B, n), (B, H, n, keys), and those of no key."""
        ...


@dataclass(frozen=True)
class ProductScores:
    """Scores of scaled dot-product attention that is one fused call."""

    query: Tensor  # (B, H, T, d)
    key: Tensor  # (B, H or fewer, S, d)
    mask: Tensor | None  # true where a key is visible, or what is added
    causal: bool
    factor: float | None

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.query.shape[1]

    @property
    def keys(self) -> int:
        """The number of keys."""
        return self.key.shape[2]

    @property
    def scale(self) -> float:
        """What dot products are multiplied with."""
        return self.query.shape[-1] ** -0.5 if self.factor is None else self.factor

    def rows(self, places: Tensor) -> tuple[Tensor, None]:
        """Return the scores of queries at (B, n), (B, H, n, keys), and those of no key."""
        query = _take(self.query, places)  # (B, H, n, d)
        if query.dtype not in (torch.float32, torch.float64):
            query = query.float()
        key, heads = self.key.to(query.dtype), self.heads
        if key.shape[1] != heads:  # one matrix product for all queries of a key
            shape = (len(query), key.shape[1], -1, query.shape[-1])
            grouped = (query * self.scale).reshape(shape)
            scores = (grouped @ key.transpose(-1, -2)).reshape(*query.shape[:3], self.keys)
        else:
            scores = (query * self.scale) @ key.transpose(-1, -2)
        if self.mask is not None:
            mask = _take_mask(self.mask, places, self.query.shape[2])
            if mask.dtype == torch.bool:
                scores.masked_fill_(~mask, -torch.inf)
            else:
                scores += mask
        if self.causal:
            after = torch.arange(self.keys, device=places.device) > places[:, :, None]
            scores.masked_fill_(after[:, None], -torch.inf)
        return scores, None


@dataclass(frozen=True)
class GivenScores:
    """Scores that the model computes, masked, as its own softmax takes them."""

    tensor: Tensor  # (B, H, T, S or more): what comes after the keys is of no key
    keys: int
    scale: float | None = None

    @property
    def heads(self) -> int:
        """The number of heads."""
        return self.tensor.shape[1]

    def rows(self, places: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the scores of queries at (B, n), (B, H, n, keys), and those of no key."""
        scores = _take(self.tensor, places)
        if scores.dtype not in (torch.float32, torch.float64):
            scores = scores.float()
        if self.tensor.shape[-1] == self.keys:
            return scores, None
        return scores[..., : self.keys].contiguous(), scores[..., self.keys :]


def _take(tensor: Tensor, places: Tensor) -> Tensor:
    """Return the rows at places (B, n) of a tensor (B, H, T, d), as (B, H, n, d)."""
    batch = torch.arange(len(places), device=places.device)[:, None]
    return tensor.transpose(1, 2)[batch, places].transpose(1, 2).contiguous()


def _take_mask(mask: Tensor, places: Tensor, queries: int) -> Tensor:
    """Return the rows of a mask, whose axes may be of length one."""
    while mask.ndim < 4:
        mask = mask[None]
    if mask.shape[2] == 1:
        return mask
    if len(mask) != len(places):
        mask = mask.expand(len(places), *mask.shape[1:])
    return _take(mask[:, :, -queries:], places)


@dataclass(frozen=True)
class QueryStatistics:
    """What the chosen queries make of their keys, (B, H, n, statistics), and who sees none."""

    values: Tensor  # in the order of accumulate.heads.STATISTICS; not weighted
    blind: Tensor  # (B, H, n)


def query_statistics(
    scores: Scores,
    places: Tensor,
    first: Tensor,
    sinks: Tensor | None,
    scale: float | None = None,
) -> QueryStatistics:
    """Return the statistics of the queries at (B, n).

    `first` is where each document begins among the keys, (B,), and `sinks` which keys are
    norm sinks, (B, S). `scale` is that of dot products, where the scores do not tell. A few
    queries at a time, so that memory does not grow with the square of the length.
    """
    scale = scores.scale if scale is None else scale
    step = max(1, ROOM // (len(places) * scores.heads * scores.keys))
    shape = (len(places), scores.heads, places.shape[1])
    whole: QueryStatistics | None = None
    for start in range(0, places.shape[1], step):
        at = slice(start, start + step)
        part = _statistics(scores, places[:, at], first, sinks, scale or 0.0)
        # Results of their own would lie between large blocks that are free again, which then
        # are too small for the next: at 16,384 tokens that took gigabytes.
        if whole is None:
            values = part.values.new_empty((*shape, part.values.shape[-1]))
            whole = QueryStatistics(values, part.blind.new_empty(shape))
        whole.values[:, :, at] = part.values
        whole.blind[:, :, at] = part.blind
    assert whole is not None  # there is a query
    return whole


def _statistics(
    scores: Scores, places: Tensor, first: Tensor, sinks: Tensor | None, scale: float
) -> QueryStatistics:
    rows, others = scores.rows(places)  # (B, H, n, S)
    visible = rows > HIDDEN
    count = visible.sum(dim=-1).to(rows.dtype)  # (B, H, n)
    blind = count == 0
    rows.masked_fill_(~visible, -torch.inf)
    highest = rows.amax(dim=-1, keepdim=True)
    if others is not None:
        highest = torch.maximum(highest, others.amax(dim=-1, keepdim=True))
    highest.masked_fill_(~highest.isfinite(), 0.0)
    rows -= highest  # the softmax is the same, and sums lose no digits
    powers = rows.exp()
    total = powers.sum(dim=-1)
    if others is not None:
        total = total + (others - highest).exp().sum(dim=-1)
    total.masked_fill_(blind, 1.0)
    rows.masked_fill_(~visible, 0.0)
    # H = -sum p log p with log p = s - log Z, and p = e^s / Z
    log_total, seen = total.log(), powers.sum(dim=-1) / total
    entropy = log_total * seen - torch.linalg.vecdot(powers, rows) / total
    several = count > 1
    relative = torch.where(several, entropy / count.clamp_min(2.0).log(), 0.0)
    mean = rows.sum(dim=-1, keepdim=True) / count.clamp_min(1.0)[..., None]
    largest = powers.amax(dim=-1) / total
    begin = first[:, None, None, None].expand(*powers.shape[:3], 1)
    on_first = powers.gather(-1, begin)[..., 0] / total
    on_sinks = torch.zeros_like(total)
    if sinks is not None:
        on_sinks = (powers @ sinks.to(powers.dtype)[:, None, :, None])[..., 0] / total
    rows -= mean
    rows.masked_fill_(~visible, 0.0)
    spread = (torch.linalg.vecdot(rows, rows) / count.clamp_min(1.0)).sqrt()
    one = torch.ones_like(total)
    least, factor = several.to(one.dtype), one * scale
    values = torch.stack(
        [one, spread, least, relative, largest, on_first, on_sinks, factor], dim=-1
    )
    values.masked_fill_(blind[..., None], 0.0)
    return QueryStatistics(values, blind)


def fit_scale(query: Tensor, key: Tensor, scores: Tensor) -> float:
    """Return what dot products were multiplied with to give these scores, by regression.

    Where biases of positions were added, what documents differ by is looked at. The common
    scales are recognised within a few per cent, since other terms add noise (deberta).
    """
    heads, width = scores.shape[1], query.shape[-1]
    key = key.repeat_interleave(heads // key.shape[1], dim=1)
    plain = query.double() @ key.double().transpose(-1, -2)
    given = scores[..., : key.shape[2]].double()
    visible = given > HIDDEN
    if len(given) > 1:  # biases of positions are the same in all documents
        everywhere = visible.all(dim=0, keepdim=True).expand_as(visible)
        plain, given = (
            torch.where(everywhere, each - each.mean(dim=0, keepdim=True), 0.0)
            for each in (plain, given)
        )
    else:
        count = visible.sum(dim=-1, keepdim=True).clamp_min(1)
        plain, given = (torch.where(visible, each, 0.0) for each in (plain, given))
        plain, given = (
            torch.where(visible, each - each.sum(dim=-1, keepdim=True) / count, 0.0)
            for each in (plain, given)
        )
    slope = float((plain * given).sum() / (plain * plain).sum().clamp_min(1e-300))
    usual = [1.0, *((times * width) ** -0.5 for times in (1, 2, 3))]
    nearest = min(usual, key=lambda each: abs(each - slope))
    return nearest if abs(nearest - slope) < 0.1 * nearest else slope
