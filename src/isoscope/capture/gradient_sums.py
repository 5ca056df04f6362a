"""Sums of gradients while micro-batches run: energies by cell, scatters by share of documents.

Nothing of the size of a gradient is kept. Rows are summed where the tensor is; accumulators
are made of the sums at the end. It can be fed with tensors of any origin: a pass over a corpus,
or the hooks of a training loop.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import field

import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate import (
    Concepts,
    GradientPieces,
    Gradients,
    ShuffledGradients,
    Tally,
)
from isoscope.accumulate.concepts import KEPT, SIGNS, Candidates
from isoscope.accumulate.gradients import BANDS, HALVES, PARTS, PIECES, ShareSums
from isoscope.accumulate.heads import SHARES
from isoscope.accumulate.survey import Accumulators, Survey
from isoscope.capture.listener import CONTEXT
from isoscope.dataclass import dataclass
from isoscope.hashing import GROUPS, hash_tuples, text_key
from isoscope.types import Array

_SEEDS = 2**53  # of random controls


@dataclass(frozen=True, eq=False)
class Rows:
    """Which positions of a micro-batch are rows, and where each is summed."""

    places: Tensor  # (n,) among all positions of the batch
    parts: Tensor  # (n,) cell, half and frequency band as one number
    shares: tuple[Tensor, ...]  # of the rows, those of each share of the documents
    pieces: tuple[Tensor, ...]  # (PIECES SHARES) the same by half, then by frequency band
    lengths: Array  # (documents,) rows of each


@dataclass(eq=False)
class _Scatters:
    """Rows, their sum and their products about zero, of several shares of them."""

    shares: int
    like: Tensor  # (d, ...) in the precision of rows
    rows: Array = field(init=False)  # (shares,)
    total: Tensor = field(init=False)  # (shares, d)
    products: dict[int, Tensor] = field(default_factory=dict[int, Tensor])  # (d, d) by share

    def __post_init__(self) -> None:
        width, place = len(self.like), self.like.device
        self.rows = np.zeros(self.shares)
        self.total = torch.zeros((self.shares, width), dtype=torch.float64, device=place)

    def at(self, share: int) -> Tensor:
        """Return the products of a share, made where there are none yet."""
        if share not in self.products:
            self.products[share] = self.like.new_zeros((len(self.like), len(self.like)))
        return self.products[share]

    def add(self, rows: Tensor, chosen: tuple[Tensor, ...]) -> None:
        """Add rows (n, d), of which `chosen` are those of each share."""
        for share, places in enumerate(chosen):
            if len(places):
                here = rows if len(places) == len(rows) else rows[places]
                self.rows[share] += len(here)
                self.total[share] += here.sum(dim=0, dtype=torch.float64)
                self.at(share).addmm_(here.T, here)

    def sums(self) -> ShareSums:
        """Return the sums about the mean of each share."""
        products = np.zeros((self.shares, len(self.like), len(self.like)))
        for share, each in self.products.items():
            products[share] = each.double().cpu().numpy()
        return ShareSums.about_zero(self.rows, self.total.cpu().numpy(), products)


@dataclass(eq=False)
class _Sums:
    """The sums of one site."""

    basis: Tensor  # (d, k) in the precision of rows
    cells: int
    apart: bool  # whether scatters of halves and bands are kept as well
    sums: Tensor = field(init=False)  # (cells PARTS, 2 + k)
    scatters: _Scatters = field(init=False)
    pieces: _Scatters | None = field(init=False)

    def __post_init__(self) -> None:
        rank = self.basis.shape[1]
        self.sums = torch.zeros(
            (self.cells * PARTS, 2 + rank), dtype=torch.float64, device=self.basis.device
        )
        self.scatters = _Scatters(SHARES, self.basis)
        self.pieces = _Scatters(PIECES * SHARES, self.basis) if self.apart else None

    def add(self, rows: Tensor, where: Rows) -> None:
        """Add rows (n, d), each its own gradient."""
        along = (rows @ self.basis).double().square_()
        energy = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).square_()
        self._add_energy(where.parts, torch.ones_like(energy), energy, along)
        self.scatters.add(rows, where.shares)
        if self.pieces is not None:
            self.pieces.add(rows, where.pieces)

    def _add_energy(self, parts: Tensor, count: Tensor, energy: Tensor, along: Tensor) -> None:
        columns = torch.cat([count[:, None], energy[:, None], along], dim=1)
        self.sums.index_add_(0, parts, columns)

    def add_products(
        self, products: Tensor, total: Tensor, rows: int, share: int, part: int
    ) -> None:
        """Add the products (d, d) and the sum of rows that are not there one by one."""
        along = torch.einsum("dk,dk->k", self.basis, products @ self.basis).double()
        where = torch.tensor([part], device=self.sums.device)
        count = self.sums.new_full((1,), rows)
        energy = products.diagonal().double().sum()[None]
        self._add_energy(where, count, energy, along.clamp_(min=0)[None])
        self.scatters.rows[share] += rows
        self.scatters.total[share] += total.double()
        self.scatters.at(share).add_(products)


class GradientSums:
    """Hears gradients of sites, micro-batch by micro-batch, and sums them by proxy.

    `proxies` are orthonormal bases (d, k) by site. Cells are documents, or 32 groups of them
    where `folded`; micro-batches are the documents of weight gradients. Of the sites `apart`
    the scatters of halves and frequency bands are kept as well.
    """

    def __init__(
        self,
        proxies: Mapping[str, Array],
        *,
        seed: int = 0,
        folded: bool = True,
        bands: Array | None = None,
        concepts: Mapping[str, Concepts] | None = None,
        decode: Callable[[list[int]], str] | None = None,
        apart: Collection[str] = (),
    ) -> None:
        self.proxies, self.seed, self.folded = proxies, seed, folded
        self.apart = frozenset(apart)
        self.decode = decode
        self._concepts = dict(concepts or {})  # by site, empty ones that are filled
        self._tokens: Tensor | None = None
        self._documents: Array | None = None
        self.bands = None if bands is None else torch.from_numpy(bands.astype(np.int64))
        self.counted = bands is not None
        self._sums: dict[tuple[str, bool], _Sums] = {}
        self._rows: Rows | None = None
        self._real: Tensor | None = None
        self._number = self._half = 0
        self._keys: dict[int, int] = {}  # of documents: their cells
        self._seen: dict[bool, dict[int, int]] = {False: {}, True: {}}  # rows by document
        self._batches: dict[str, int] = {}  # micro-batches by site of weights
        self._products: dict[int, tuple[Tensor, Tensor, Tensor]] = {}  # of inputs, by place
        self._control: set[str] = set()  # sites that had permuted targets

    def begin(
        self,
        keys: Array,
        rows: Tensor,
        *,
        tokens: Tensor | None = None,
        real: Tensor | None = None,
        number: int = 0,
        late: bool = False,
    ) -> None:
        """Turn to a micro-batch of documents `keys` (B,), whose `rows` (B, T) have targets.

        `real` are all positions of the documents, which weight gradients sum over.
        """
        self._real = rows if real is None else real
        self._tokens, self._documents = tokens, keys
        self._number, self._half = number, int(late)
        self._products.clear()
        cells = torch.from_numpy(self._cells(keys)).to(rows.device)
        shares = torch.from_numpy((keys % np.uint64(SHARES)).astype(np.int64)).to(rows.device)
        places = rows.reshape(-1).nonzero()[:, 0]
        document = places // rows.shape[1]
        band = torch.zeros_like(document)
        if tokens is not None and self.bands is not None:
            known = self.bands.to(rows.device)
            chosen = tokens.reshape(-1)[places]
            band = torch.where(chosen < len(known), known[chosen.clamp(max=len(known) - 1)], 0)
        parts = cells[document] * PARTS + self._half * BANDS + band
        own = shares[document]
        chosen_rows = tuple((own == each).nonzero()[:, 0] for each in range(SHARES))
        pieces: list[Tensor] = []
        if self.apart:
            nothing = own[:0]
            for half in range(len(HALVES)):
                here = half == self._half
                pieces += chosen_rows if here else (nothing for _ in chosen_rows)
            for each in range(BANDS):
                of_band = band == each
                pieces += (chosen[of_band[chosen]] for chosen in chosen_rows)
        lengths = rows.sum(dim=1).cpu().numpy()
        self._rows = Rows(places, parts, chosen_rows, tuple(pieces), lengths)
        self._count(keys, lengths)
        self._control.clear()

    def _cells(self, keys: Array) -> Array:
        """Return the cell of each document: its group, or a cell of its own."""
        if self.folded:
            return (keys % np.uint64(GROUPS)).astype(np.int64)
        found = [self._keys.setdefault(int(key), len(self._keys)) for key in keys]
        return np.array(found, dtype=np.int64)

    def _count(self, keys: Array, lengths: Array) -> None:
        seen = self._seen[False]
        for key, length in zip(keys, lengths, strict=True):
            if length:
                seen[int(key)] = seen.get(int(key), 0) + int(length)
        self._now = {int(k): int(n) for k, n in zip(keys, lengths, strict=True) if n}

    def add(self, site: str, gradient: Tensor, *, shuffled: bool = False) -> None:
        """Add the gradient of a stream, (B, T, d)."""
        assert self._rows is not None
        if shuffled and not self._control:
            for key, rows in self._now.items():
                self._seen[True][key] = self._seen[True].get(key, 0) + rows
            self._control.add(site)
        flat = _precise(gradient).reshape(-1, gradient.shape[-1])
        self._of(site, flat, shuffled).add(flat[self._rows.places], self._rows)

    def add_activations(self, site: str, states: Tensor) -> None:
        """Look for the tokens that reach furthest along the directions of a proxy."""
        concepts, tokens = self._concepts.get(site), self._tokens
        if concepts is None or tokens is None or self._rows is None:
            return
        places = self._rows.places
        flat = _precise(states).reshape(-1, states.shape[-1])[places]  # (n, d)
        if not len(flat):
            return
        centre, basis = (
            torch.tensor(each).to(flat) for each in (concepts.centre, concepts.basis)
        )
        along = flat @ basis - centre @ basis  # (n, k)
        types, which = tokens.reshape(-1)[places].unique(return_inverse=True)
        index = which[:, None].expand_as(along)
        for side, sign in enumerate(SIGNS):
            reach = sign * along
            furthest = reach.new_full((len(types), reach.shape[1]), -torch.inf)
            furthest.scatter_reduce_(0, index, reach, "amax")
            best = furthest.topk(min(KEPT, len(types)), dim=0).values.double().cpu().numpy()
            for direction in np.flatnonzero(best[0] > concepts.least_reach()[:, side]):
                self._offer(concepts, int(direction), side, reach, furthest, which, types)
        concepts.count_rows(len(flat))

    def _offer(
        self,
        concepts: Concepts,
        direction: int,
        side: int,
        reach: Tensor,
        furthest: Tensor,
        which: Tensor,
        types: Tensor,
    ) -> None:
        """Pass on the furthest row of each of the tokens that reach furthest."""
        assert self._rows is not None and self._documents is not None
        assert self._tokens is not None
        column = reach[:, direction]
        kinds = furthest[:, direction].topk(min(KEPT, len(types))).indices
        rows = [
            int(((which == kind) & (column == furthest[kind, direction])).nonzero()[0, 0])
            for kind in kinds
        ]
        places = [int(self._rows.places[row]) for row in rows]
        length = self._tokens.shape[1]
        marks = hash_tuples(
            self._documents[[place // length for place in places]],
            np.array([place % length for place in places], dtype=np.uint64),
        )
        concepts.offer(
            direction,
            side,
            Candidates(
                column[rows].double().cpu().numpy(),
                types[kinds].cpu().numpy(),
                marks,
                [self._quote(place) for place in places],
            ),
        )

    def _quote(self, place: int) -> tuple[str, str]:
        """Return the token at a place of the flattened batch, and the words around it."""
        assert self._tokens is not None and self._real is not None
        if self.decode is None:
            return "", ""
        row, at = divmod(place, self._tokens.shape[1])
        near = range(max(0, at - CONTEXT), min(at + CONTEXT + 1, self._tokens.shape[1]))
        tokens = self._tokens[row].tolist()
        real = self._real[row].tolist()
        words = self.decode([tokens[each] for each in near if real[each]])
        return self.decode([tokens[at]]), words

    def add_weights(self, site: str, inputs: Tensor, deltas: Tensor) -> None:
        """Add the gradient of a weight, from what its map receives and what flows back.

        G = Delta' X is (out, d): each of its rows is one. The shuffled control, the backward
        signal permuted against the inputs, is known in expectation:

            E[G'G] = m^2 |mean delta|^2 mean x mean x' + SS_delta / (m - 1) C_x
        """
        assert self._real is not None
        real = self._real.reshape(-1)
        x = _precise(inputs).reshape(-1, inputs.shape[-1])[real]  # (m, d)
        delta = _precise(deltas).reshape(-1, deltas.shape[-1])[real]  # (m, out)
        weight = delta.T @ x  # (out, d)
        share, cell = self._number % SHARES, self._number % GROUPS
        if not self.folded:
            cell = self._keys.setdefault(self._number, len(self._keys))
        part = cell * PARTS + self._half * BANDS
        rows = len(weight)
        sums = self._of(site, weight, False)
        sums.add_products(weight.T @ weight, weight.sum(dim=0), rows, share, part)
        self._batches[site] = self._batches.get(site, 0) + 1
        if len(x) > 1:
            mean, level, about = self._inputs(inputs, x)
            centre = delta.mean(dim=0)
            spread = (delta - centre).square().sum() / (len(x) - 1)
            expected = len(x) ** 2 * centre.square().sum() * level + spread * about
            control = self._of(site, weight, True)
            control.add_products(expected, len(x) * centre.sum() * mean, rows, share, part)

    def _inputs(self, inputs: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, its square, and the centred scatter of inputs: maps may share them."""
        place = inputs.data_ptr()
        if place not in self._products:
            mean = x.mean(dim=0)
            off = x - mean
            self._products[place] = mean, torch.outer(mean, mean), off.T @ off
        return self._products[place]

    @property
    def _room(self) -> int:
        """How many cells there may be: of at most 32 documents and as many micro-batches."""
        return GROUPS if self.folded else 2 * GROUPS

    def _of(self, site: str, like: Tensor, shuffled: bool) -> _Sums:
        if (site, shuffled) not in self._sums:
            basis = torch.tensor(self.proxies[site])
            apart = site in self.apart and not shuffled
            self._sums[site, shuffled] = _Sums(basis.to(like), self._room, apart)
        return self._sums[site, shuffled]

    def finish(self) -> Survey:
        """Return the accumulators of all sites; without a control, an empty one of it."""
        survey = Survey()
        for site in dict.fromkeys(site for site, _ in self._sums):
            weights = site in self._batches
            real = self._accumulator(Gradients, site, weights)
            here: Accumulators = {
                Tally: self._tally(real, weights),
                Gradients: real,
                ShuffledGradients: self._accumulator(ShuffledGradients, site, weights),
            }
            pieces = self._pieces(site)
            if pieces is not None:
                here[GradientPieces] = pieces
            if site in self._concepts:
                here[Concepts] = self._concepts[site]
            survey.held[site, "all"] = here
        return survey

    def _accumulator(self, kind: type[Gradients], site: str, weights: bool) -> Gradients:
        shuffled = kind is ShuffledGradients
        proxy = self.proxies[site]
        part = kind(len(proxy), proxy, site_seed(self.seed, site))
        sums = self._sums.get((site, shuffled))
        if sums is None:
            return part
        keys = np.arange(GROUPS, dtype=np.uint64)
        if not self.folded:
            keys = np.array(list(self._keys), dtype=np.uint64)
        part.add_sums(
            keys,
            self.folded,
            sums.sums.reshape(self._room, PARTS, -1).cpu().numpy()[: len(keys)],
            sums.scatters.sums(),
            documents=self._batches[site] if weights else len(self._seen[shuffled]),
            counted=self.counted and not weights,
            single=sums.basis.dtype == torch.float32,
        )
        return part

    def _pieces(self, site: str) -> GradientPieces | None:
        """Return the scatters of halves and bands of a site that keeps them."""
        sums = self._sums.get((site, False))
        if sums is None or sums.pieces is None:
            return None
        part = GradientPieces(len(self.proxies[site]))
        part.add_sums(
            sums.pieces.sums(),
            documents=len(self._seen[False]),
            single=sums.basis.dtype == torch.float32,
        )
        return part

    def _tally(self, part: Gradients, weights: bool) -> Tally:
        tally, seen = Tally(part.width), self._seen[False]
        keys = np.sort(np.array([] if weights else list(seen), dtype=np.uint64))
        lengths = np.array(list(seen.values()), dtype=np.float64)
        pairs = part.count**2 / max(part.documents, 1) if weights else lengths @ lengths
        tally.add_counts(part.count, part.documents, float(pairs), 0, keys)
        return tally


def site_seed(seed: int, site: str) -> int:
    """Return the seed of the random controls of a site."""
    return int(hash_tuples(seed, text_key(site))) % _SEEDS


def _precise(tensor: Tensor) -> Tensor:
    """Return a tensor in float32 or float64."""
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()
