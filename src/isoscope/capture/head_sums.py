"""Sums over the heads of a model while documents run through it: all heads of a layer at once.

Nothing of the size of the activations is kept. Rows are summed where the tensor is, by
document, and documents by cell; accumulators of single heads are made of it at the end.
"""

from dataclasses import field

import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate import (
    Directions,
    EarlyKeys,
    EarlyQueries,
    Keys,
    Queries,
    QueryScores,
    Tally,
)
from isoscope.accumulate.heads import SHARES, STATISTICS, HeadMeans
from isoscope.accumulate.row_bands import POSITIONS, position_bands
from isoscope.accumulate.survey import Accumulators, Survey
from isoscope.capture.heads import AttentionCall, LayerHeads
from isoscope.capture.listener import Marked, document_keys, sinks
from isoscope.capture.scores import query_statistics
from isoscope.dataclass import dataclass
from isoscope.hashing import GROUPS, hash_tuples
from isoscope.site import CROSS, DECODER, ENCODER, Site
from isoscope.types import Array

_DRAWN = 0x71756572  # so that draws of queries and of other samples differ


@dataclass(frozen=True)
class Members:
    """The documents of a batch, and the cells and shares that they belong to."""

    keys: Array  # (B,)
    cells: Tensor  # (B,)
    shares: Tensor  # (B,)
    names: tuple[str, ...]


@dataclass(frozen=True)
class Real:
    """Which positions of a stack are of documents."""

    mask: Tensor | None  # (B, 1, T, 1) of ones and zeros; None where there is no padding
    weights: Tensor  # (B, 1, 1, T) of ones and zeros
    real: Tensor  # (B, T) bool
    lengths: Tensor  # (B,) float64
    first: Tensor  # (B,) the first of each document


@dataclass(frozen=True)
class Chosen:
    """The queries whose scores are looked at."""

    places: Tensor  # (B, n); those of no query repeat the first
    weights: Tensor  # (B, n) queries that each stands for; 0 where it is none
    bands: Tensor  # (B n,) of their positions


def draw_queries(keys: Array, lengths: Array, queries: int | None, seed: int) -> list[Array]:
    """Return the ordinals of the queries to look at, document by document.

    One is drawn from each of `queries` stretches of equal length, by a hash of the document:
    each is as likely as any other, whatever the batch. None means all.
    """
    found: list[Array] = []
    for key, length in zip(keys, lengths, strict=True):
        if queries is None or length <= queries:
            found.append(np.arange(length))
            continue
        stretches = np.arange(queries, dtype=np.uint64)
        draws = hash_tuples(_DRAWN, seed, key, stretches) / 2.0**64
        places = np.floor((stretches + draws) * (length / queries)).astype(np.int64)
        found.append(np.minimum(places, length - 1))
    return found


@dataclass
class _RowSums:
    """Sums of rows about an origin, all heads of a layer together."""

    cells: int
    means_only: bool
    origin: Tensor | None = None  # (H, 1, d)
    total: Tensor = field(default_factory=lambda: torch.zeros(0))  # (cells, H, d) of z
    units: Tensor = field(default_factory=lambda: torch.zeros(0))  # (cells, H, d)
    nonzero: Tensor = field(default_factory=lambda: torch.zeros(0))  # (cells, H)
    scatter: Tensor = field(default_factory=lambda: torch.zeros(0))  # (SHARES, H, d, d) of z z'
    rows: Array = field(default_factory=lambda: np.zeros(0))  # (cells,)
    documents: Array = field(default_factory=lambda: np.zeros(0))  # (cells,)
    share_rows: Array = field(default_factory=lambda: np.zeros(SHARES))
    share_total: Tensor = field(default_factory=lambda: torch.zeros(0))  # (SHARES, H, d)
    pairs: float = 0.0

    def begin(self, rows: Tensor, real: Real) -> Tensor:
        """Make room, about the mean of the first batch."""
        heads, width = rows.shape[1], rows.shape[3]
        total = (real.weights.to(rows.dtype) @ rows).sum(dim=0)  # (H, 1, d)
        origin = total / real.lengths.sum().to(rows.dtype)
        if self.means_only:
            origin = torch.zeros_like(origin)
        self.total = _zeros((self.cells, heads, width), rows)
        self.rows, self.documents = np.zeros(self.cells), np.zeros(self.cells)
        if not self.means_only:
            self.units = torch.zeros_like(self.total)
            self.nonzero = _zeros((self.cells, heads), rows)
            self.scatter = _zeros((SHARES, heads, width, width), rows)
            self.share_total = _zeros((SHARES, heads, width), rows)
        self.origin = origin
        return origin

    def add(self, given: Tensor, real: Real, members: Members) -> Tensor:
        """Add rows (B, H, T, d); return the sums of each document, (B, H, d)."""
        rows = given if given.dtype in (torch.float32, torch.float64) else given.float()
        origin = self.begin(rows, real) if self.origin is None else self.origin
        np.add.at(self.rows, members.cells.cpu().numpy(), real.lengths.cpu().numpy())
        np.add.at(self.documents, members.cells.cpu().numpy(), 1.0)
        self.pairs += float(real.lengths.square().sum())
        if self.means_only:
            found = (real.weights.to(rows.dtype) @ rows)[:, :, 0]
            self.total.index_add_(0, members.cells, found.double())
            return found
        z = torch.sub(rows, origin, out=rows.new_empty(rows.shape))  # in order, for products
        if real.mask is not None:
            z *= real.mask.to(rows.dtype)
        norms = torch.linalg.vector_norm(rows, dim=-1)[:, :, None]  # (B, H, 1, T)
        inverse = torch.where(norms > 0, 1 / norms, 0.0) * real.weights.to(rows.dtype)
        ones = real.weights.to(rows.dtype).expand_as(inverse)
        both = (torch.cat([ones, inverse], dim=2) @ z).double()  # (B, H, 2, d)
        total = both[:, :, 0]
        weight = inverse.sum(dim=-1).double()  # (B, H, 1)
        units = both[:, :, 1] + weight * origin[:, 0].double()
        self.total.index_add_(0, members.cells, total)
        self.units.index_add_(0, members.cells, units)
        self.nonzero.index_add_(0, members.cells, (inverse > 0).sum(dim=(2, 3)).double())
        products = z.transpose(-1, -2) @ z  # (B, H, d, d)
        here = products.new_zeros(self.scatter.shape)
        self.scatter += here.index_add_(0, members.shares, products)
        self.share_total.index_add_(0, members.shares, total)
        np.add.at(self.share_rows, members.shares.cpu().numpy(), real.lengths.cpu().numpy())
        return total

    def parts(self, head: int) -> dict[str, Array]:
        """Return the sums of one head, by cell."""
        assert self.origin is not None
        origin = self.origin[head, 0].double().cpu().numpy()
        rows = np.maximum(self.rows, 1.0)[:, None]
        found = {
            "rows": self.rows,
            "documents": self.documents,
            "mean": origin + self.total[:, head].cpu().numpy() / rows,
        }
        if not self.means_only:
            found["units"] = self.units[:, head].cpu().numpy()
            found["nonzero"] = self.nonzero[:, head].cpu().numpy()
        return found

    def shares(self, head: int) -> tuple[Array, Array, Array]:
        """Return rows, mean and scatter about the mean of each share of the documents."""
        assert self.origin is not None
        rows = np.maximum(self.share_rows, 1.0)[:, None]
        offset = self.share_total[:, head].cpu().numpy() / rows  # (SHARES, d)
        there = (self.share_rows > 0)[:, None]
        mean = np.where(there, self.origin[head, 0].double().cpu().numpy() + offset, 0.0)
        about = self.share_rows[:, None, None] * offset[:, :, None] * offset[:, None, :]
        return self.share_rows, mean, self.scatter[:, head].cpu().numpy() - about


@dataclass
class _ScoreSums:
    """Sums of statistics of queries, all heads of a layer together."""

    sums: Tensor  # (cells, H, statistics)
    rows: Tensor  # (cells, H)
    bands: Tensor  # (POSITIONS, H, statistics)
    blind: Tensor  # (H,)

    @classmethod
    def empty(cls, cells: int, heads: int, device: torch.device) -> "_ScoreSums":
        size = len(STATISTICS)
        shapes = ((cells, heads, size), (cells, heads), (POSITIONS, heads, size), (heads,))
        return cls(*(torch.zeros(s, dtype=torch.float64, device=device) for s in shapes))


@dataclass
class _LayerSums:
    queries: _RowSums
    keys: _RowSums
    early: tuple[_RowSums, _RowSums] | None
    scores: _ScoreSums


@dataclass
class _StreamSums:
    """Sums of unit vectors of the stream that enters a block."""

    units: Tensor  # (cells, d)
    energy: Tensor  # (d,)
    nonzero: Tensor  # (cells,)
    own: Tensor  # (cells,)
    pairs: Tensor  # (cells,)
    rows: float = 0.0
    squared: float = 0.0
    documents: int = 0


class HeadSums:
    """Hears the heads of a forward pass, batch after batch, and sums them up."""

    def __init__(self, *, queries: int | None, times: float, seed: int, folded: bool) -> None:
        self.queries = queries  # of each document whose scores are looked at; None: all
        self.times = times  # the median norm above which a token is a norm sink
        self.seed = seed
        self.folded = folded  # whether cells are groups of documents
        self._batch: Marked | None = None
        self._members: Members | None = None
        self._known: list[int] = []  # documents that are cells, where these are not groups
        self._sample: set[int] = set()
        self._real: dict[tuple[str, int], Real] = {}
        self._chosen: dict[tuple[str, int], Chosen] = {}
        self._sinks: dict[str, Tensor | None] = {}  # of the stream that entered last, by stack
        self._layers: dict[str, _LayerSums] = {}
        self._order: dict[str, LayerHeads] = {}
        self._streams: dict[str, _StreamSums] = {}
        self.trouble: dict[str, str] = {}

    def begin(self, batch: Marked) -> None:
        """Start the next batch."""
        keys = document_keys(batch, self.seed)
        self._batch = batch
        self._real.clear()
        self._chosen.clear()
        self._sinks.clear()
        if self.folded:
            cells = (keys % np.uint64(GROUPS)).astype(np.int64)
        else:
            self._known += [int(key) for key in keys if int(key) not in self._known]
            cells = np.array([self._known.index(int(key)) for key in keys])
        self._members = Members(
            keys,
            torch.from_numpy(cells),
            torch.from_numpy((keys % np.uint64(SHARES)).astype(np.int64)),
            tuple(batch.documents),
        )
        self._sample.update(int(key) for key in keys)

    def end(self) -> None:
        """End the batch: until the next begins, the model may run for other reasons.

        Speech models write transcripts of documents that are made ready.
        """
        self._members = None

    def enter(self, stack: str, layer: int, stream: Tensor) -> None:
        """Take the stream that enters a block, (B, T, d)."""
        if self._members is None or stream.ndim != 3 or len(stream) != len(self._members.keys):
            return
        real = self._positions(stack, stream)
        rows = stream if stream.dtype in (torch.float32, torch.float64) else stream.float()
        norms = torch.linalg.vector_norm(rows, dim=-1)
        self._sinks[stack] = self._find_sinks(norms, real)
        name = "embed" if layer == 0 else "resid"
        site = str(Site(name, None if layer == 0 else layer - 1, stack=stack))
        if site in self.trouble:
            return
        weights = real.weights[:, 0].to(rows.dtype)  # (B, 1, T)
        if not bool(torch.isfinite((norms * weights[:, 0]).sum())):
            self._note(site, norms, real)
            return
        inverse = torch.where(norms > 0, 1 / norms, 0.0)[:, None] * weights
        units = (inverse @ rows)[:, 0].double()  # (B, d)
        nonzero = (inverse > 0).sum(dim=(1, 2)).double()
        energy = inverse.square().reshape(1, -1) @ rows.square().reshape(-1, rows.shape[-1])
        sums = self._streams.get(site)
        if sums is None:
            cells, width = self._cells, rows.shape[-1]
            shapes = ((cells, width), (width,), (cells,), (cells,), (cells,))
            empty = [_zeros(shape, rows) for shape in shapes]
            sums = self._streams[site] = _StreamSums(
                empty[0], empty[1], empty[2], empty[3], empty[4]
            )
        cells = self._members.cells.to(rows.device)
        sums.units.index_add_(0, cells, units)
        sums.energy += energy[0].double()
        sums.nonzero.index_add_(0, cells, nonzero)
        sums.own.index_add_(0, cells, units.square().sum(dim=1))
        sums.pairs.index_add_(0, cells, nonzero.square())
        sums.rows += float(real.lengths.sum())
        sums.squared += float(real.lengths.square().sum())
        sums.documents += len(units)

    def hear(self, layer: LayerHeads, call: AttentionCall) -> None:
        """Take a call of attention."""
        site = layer.sites[0]
        if site in self.trouble or self._members is None or call.scores is None:
            return
        query, key = call.pair(layer.way)
        members = self._members
        if query.device != members.cells.device:
            members = Members(
                members.keys,
                members.cells.to(query.device),
                members.shares.to(query.device),
                members.names,
            )
        crossing = layer.stack == CROSS
        asked, seen = (DECODER, ENCODER) if crossing else (layer.stack, layer.stack)
        real = self._positions(asked, query.transpose(1, 2))
        of_keys = self._positions(seen, key.transpose(1, 2))
        sums = self._layers.get(site)
        if sums is None:
            sums = self._begin_layer(layer, query.device)
        before = call.pair_before(layer.way) if sums.early is not None else None
        found = [sums.queries.add(query, real, members), sums.keys.add(key, of_keys, members)]
        if sums.early is not None and before is not None:
            found.append(sums.early[0].add(before[0], real, members))
            found.append(sums.early[1].add(before[1], of_keys, members))
        marked = self._sinks.get(asked)
        if crossing:
            marked = self._sinks_of(call.others, of_keys)
        chosen = self._choose(asked, query.shape[2], real)
        statistics = query_statistics(
            call.scores, chosen.places, of_keys.first, marked, layer.scale
        )
        weighted = statistics.values.double() * chosen.weights[:, None, :, None]
        by_document = weighted.sum(dim=2)  # (B, H, statistics)
        there = (chosen.weights > 0)[:, None]  # (B, 1, n)
        scores = sums.scores
        scores.sums.index_add_(0, members.cells, by_document)
        looked = (there & ~statistics.blind).sum(dim=2).double()
        scores.rows.index_add_(0, members.cells, looked)
        scores.blind += (there & statistics.blind).sum(dim=(0, 2)).double()
        flat = weighted.transpose(1, 2).flatten(0, 1)  # (B n, H, statistics)
        scores.bands.index_add_(0, chosen.bands, flat)
        good = all(bool(torch.isfinite(each.sum())) for each in (*found, by_document))
        if not good:
            self._note_layer(layer, query, key, real, of_keys)

    def finish(self) -> Survey:
        """Return the accumulators of all heads, of their keys, and of the stream."""
        survey = Survey(trouble=dict(self.trouble))
        keys = np.arange(GROUPS, dtype=np.uint64)
        if not self.folded:
            keys = np.array(self._known, dtype=np.uint64)
        sample = np.array(sorted(self._sample), dtype=np.uint64)
        for site, sums in self._layers.items():
            layer = self._order[site]
            if site in self.trouble:
                for each in (*layer.sites, *layer.keys):
                    survey.trouble.setdefault(each, self.trouble[site])
                continue
            for number, name in enumerate(layer.sites):
                held = self._of_rows(Queries(layer.width), sums.queries, number, keys, sample)
                if sums.early is not None:
                    early = EarlyQueries(layer.width)
                    held[EarlyQueries] = self._of_means(early, sums.early[0], number, keys)
                held[QueryScores] = self._of_scores(sums, number, keys)
                survey.held[name, "all"] = held
            for number, name in enumerate(layer.keys):
                held = self._of_rows(Keys(layer.width), sums.keys, number, keys, sample)
                if sums.early is not None:
                    early = EarlyKeys(layer.width)
                    held[EarlyKeys] = self._of_means(early, sums.early[1], number, keys)
                survey.held[name, "all"] = held
        streams = (each for each in self._streams.items() if each[0] not in self.trouble)
        for site, sums in streams:
            survey.held[site, "all"] = self._of_stream(sums, keys, sample)
        return survey

    @property
    def _cells(self) -> int:
        return GROUPS

    def _positions(self, stack: str, tensor: Tensor) -> Real:
        """Return which positions of a tensor (B, T, ...) are of documents."""
        assert self._batch is not None
        key = (stack, tensor.shape[1])
        if key not in self._real:
            real = self._batch.marks(stack, tensor.shape[1]).real.to(tensor.device)
            weights = real[:, None, None, :].float()
            mask = None if bool(real.all()) else real[:, None, :, None].float()
            lengths = real.sum(dim=1).double()
            self._real[key] = Real(mask, weights, real, lengths, real.int().argmax(dim=1))
        return self._real[key]

    def _find_sinks(self, norms: Tensor, real: Real) -> Tensor | None:
        found = sinks(norms, real.real, self.times)
        return found if bool(found.any()) else None

    def _sinks_of(self, states: Tensor | None, real: Real) -> Tensor | None:
        """Return the sinks among the states that keys of a crossing are made of."""
        if states is None or states.shape[:2] != real.real.shape:
            return None
        norms = torch.linalg.vector_norm(states.detach().float(), dim=-1)
        return self._find_sinks(norms, real)

    def _choose(self, stack: str, length: int, real: Real) -> Chosen:
        """Return the queries of this batch that are looked at."""
        key = (stack, length)
        if key in self._chosen:
            return self._chosen[key]
        assert self._members is not None
        mask = real.real.cpu().numpy()
        lengths = mask.sum(axis=1)
        drawn = draw_queries(self._members.keys, lengths, self.queries, self.seed)
        most = max(max(map(len, drawn), default=0), 1)
        places = np.zeros((len(drawn), most), dtype=np.int64)
        weights, ordinals = np.zeros((len(drawn), most)), np.zeros((len(drawn), most))
        for row, chosen in enumerate(drawn):
            if len(chosen):
                places[row] = real.first[row].item()
                places[row, : len(chosen)] = np.flatnonzero(mask[row])[chosen]
                weights[row, : len(chosen)] = lengths[row] / len(chosen)
                ordinals[row, : len(chosen)] = chosen
        bands = position_bands(ordinals.ravel())
        device = real.real.device
        self._chosen[key] = Chosen(
            *(torch.from_numpy(each).to(device) for each in (places, weights, bands))
        )
        return self._chosen[key]

    def _begin_layer(self, layer: LayerHeads, device: torch.device) -> _LayerSums:
        early = None
        if layer.rotated:
            early = (_RowSums(self._cells, True), _RowSums(self._cells, True))
        sums = _LayerSums(
            _RowSums(self._cells, False),
            _RowSums(self._cells, False),
            early,
            _ScoreSums.empty(self._cells, layer.heads, device),
        )
        site = layer.sites[0]
        self._layers[site], self._order[site] = sums, layer
        return sums

    def _note(self, site: str, norms: Tensor, real: Real) -> None:
        """Give up a site with a number that is not finite."""
        assert self._batch is not None
        bad = (~torch.isfinite(norms) & real.real).nonzero()
        where = "the scores"
        if len(bad):
            document = self._batch.documents[int(bad[0][0])]
            where = f"position {int(bad[0][1])} of document {document!r}"
        self.trouble[site] = where

    def _note_layer(
        self, layer: LayerHeads, query: Tensor, key: Tensor, real: Real, of_keys: Real
    ) -> None:
        for rows, where in ((query, real), (key, of_keys)):
            norms = rows.float().sum(dim=(1, 3))  # (B, T)
            if bool((~torch.isfinite(norms) & where.real).any()):
                self._note(layer.sites[0], norms, where)
                return
        self._note(layer.sites[0], query.new_zeros(real.real.shape), real)

    def _of_rows(
        self,
        part: Queries | Keys,
        sums: _RowSums,
        number: int,
        keys: Array,
        sample: Array,
    ) -> Accumulators:
        parts = _cut(sums.parts(number), len(keys))
        part.add_sums(keys, self.folded, parts, sums.shares(number))
        tally = Tally(part.width)
        rows = int(parts["rows"].sum())
        zeros = rows - int(parts["nonzero"].sum())
        tally.add_counts(rows, int(parts["documents"].sum()), sums.pairs, zeros, sample)
        return {Tally: tally, type(part): part}

    def _of_means(self, part: HeadMeans, sums: _RowSums, number: int, keys: Array) -> HeadMeans:
        part.add_sums(keys, self.folded, _cut(sums.parts(number), len(keys)))
        return part

    def _of_scores(self, sums: _LayerSums, number: int, keys: Array) -> QueryScores:
        scores = sums.scores
        part = QueryScores()
        parts = {
            "rows": scores.rows[:, number].cpu().numpy(),
            "documents": sums.queries.documents,
            "sums": scores.sums[:, number].cpu().numpy(),
        }
        bands = scores.bands[:, number].cpu().numpy()
        part.add_sums(
            keys, self.folded, _cut(parts, len(keys)), bands, int(scores.blind[number])
        )
        return part

    def _of_stream(self, sums: _StreamSums, keys: Array, sample: Array) -> Accumulators:
        width = sums.units.shape[1]
        part, tally = Directions(width), Tally(width)
        names = ("nonzero", "units", "own", "pairs")
        parts = {name: getattr(sums, name).cpu().numpy() for name in names}
        seen = _cut(parts, len(keys))
        part.add_sums(keys, self.folded, seen, sums.energy.cpu().numpy())
        part.count, part.documents = int(sums.rows), sums.documents
        zeros = int(sums.rows - seen["nonzero"].sum())
        tally.add_counts(int(sums.rows), sums.documents, sums.squared, zeros, sample)
        return {Tally: tally, Directions: part}


def _zeros(shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return room for sums in float64."""
    return torch.zeros(shape, dtype=torch.float64, device=like.device)


def _cut(parts: dict[str, Array], cells: int) -> dict[str, Array]:
    """Return the entries of cells that there are."""
    return {name: each[:cells] for name, each in parts.items()}
