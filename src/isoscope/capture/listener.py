"""The listener: reduces what a site passes on in a forward pass to blocks of rows.

Which positions of a batch are rows, and of which class: ordinary, special, sink or both.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate.sums import DocumentSums, SinkRows, lazy
from isoscope.capture.feed.base import Marks
from isoscope.capture.order import Order
from isoscope.capture.tensor_block import TensorBlock, TensorLayout
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.hashing import keyed_documents, named_documents
from isoscope.site import Site
from isoscope.types import CLASSES, VARIANTS, Array

FEW = 512  # rows of a class that are too few for a block of their own
ENOUGH = 2048  # rows that are enough for one
Take = Callable[[str, str, TensorBlock], None]  # site, class of rows or variant, block
Meet = Callable[[str, str, list[DocumentSums]], None]  # site, variant, its classes
Repeat = Callable[[str, str], bool]  # site, the one with its tensor: whether that one serves

CONTEXT = 6  # tokens quoted before and after a sink
SINK = 10.0  # a token is a sink above this multiple of the median norm of its document


@dataclass(frozen=True)
class Positions:
    """The positions of a batch that count, and the document of each."""

    real: Array  # (B, T) of the document, not padding
    special: Array  # (B, T)
    documents: Array  # (B,) keys
    folded: bool | None = None  # whether cells are groups of documents; None: by number
    tokens: Array | None = None  # (B, T) ids, where positions are tokens
    bands: Array | None = None  # (vocabulary,) frequency band of each token

    def layouts(self, sinks: Array | None, device: torch.device) -> dict[str, TensorLayout]:
        """Return the rows of each class that has any; `sinks` where some position is one."""
        code = self._code(sinks)
        return {
            CLASSES[number]: self._layout(self.real & (code == number), device)
            for number in np.unique(code[self.real])
        }

    def variants(self, sinks: Array | None, device: torch.device) -> dict[str, TensorLayout]:
        """Return the rows of each variant that has any: a row is in several."""
        code = self._code(sinks)
        members = {
            name: [CLASSES.index(each) for each in classes]
            for name, classes in VARIANTS.items()
        }
        chosen = {name: self.real & np.isin(code, each) for name, each in members.items()}
        return {name: self._layout(mask, device) for name, mask in chosen.items() if mask.any()}

    def _code(self, sinks: Array | None) -> Array:
        code = self.special.astype(np.int8)
        return code if sinks is None else code + 2 * sinks.astype(np.int8)

    def quote(self, place: int, decode: Callable[[list[int]], str]) -> tuple[str, str]:
        """Return the token at a place of the flattened batch, and the words around it."""
        if self.tokens is None:
            return "", ""
        sequence, at = divmod(place, self.real.shape[1])
        near = np.arange(max(0, at - CONTEXT), min(at + CONTEXT + 1, self.real.shape[1]))
        near = near[self.real[sequence, near]]
        row = self.tokens[sequence]
        return decode([int(row[at])]), decode([int(each) for each in row[near]])

    def _layout(self, chosen: Array, device: torch.device) -> TensorLayout:
        sequence, place = np.nonzero(chosen)
        ordinal = np.cumsum(self.real, axis=1) - 1  # of a row within its document
        tokens = None if self.tokens is None else self.tokens[sequence, place]
        frequency = None
        if tokens is not None and self.bands is not None:
            frequency = self.bands[tokens]
        return TensorLayout(
            self.documents[sequence],
            ordinal[sequence, place].astype(np.uint64),
            torch.from_numpy(sequence * self.real.shape[1] + place).to(device),
            folded=self.folded,
            tokens=tokens,
            frequency=frequency,
        )


def sinks(norms: Tensor, real: Tensor, times: float = SINK) -> Tensor:
    """Return which positions are sinks, (B, T), from the norms of a batch.

    A sink's norm exceeds `times` the median norm of its own document at this site, so that
    it does not depend on other documents. Attention is not looked at: these are norm sinks.
    """
    return (norms > times * _median(norms, real)) & real


def times_median(norms: Tensor, real: Tensor) -> Tensor:
    """Return how many times the median norm of its document each norm is, (B, T)."""
    return norms / _median(norms, real)


def _median(norms: Tensor, real: Tensor) -> Tensor:
    """Return the median of the real norms of each document, (B, 1); NaN is not among them."""
    kept = torch.where(real, norms, torch.full_like(norms, torch.nan))
    ordered = kept.sort(dim=1).values  # NaN last
    count = (~kept.isnan()).sum(dim=1, keepdim=True)
    low, high = ((count - 1) // 2).clamp(min=0), count // 2
    return ordered.gather(1, low) / 2 + ordered.gather(1, high) / 2


class NotAlikeError(Exception):
    """Two sites that had the same rows in earlier batches no longer have."""

    def __init__(self, site: str) -> None:
        super().__init__(site)
        self.site = site


@dataclass(frozen=True, eq=False)
class Heard:
    """The tensor of the site that was heard last, kept to recognise it at the next."""

    site: str
    tensor: Tensor
    norms: Tensor
    row: Tensor  # its first row, which has changed if the tensor was written to

    def is_same(self, tensor: Tensor, norms: Tensor) -> bool:
        """Whether a tensor is this one, with the same numbers in it."""
        mine = self.tensor
        return (
            tensor.data_ptr() == mine.data_ptr()
            and (tensor.shape, tensor.stride()) == (mine.shape, mine.stride())
            and tensor.dtype == mine.dtype
            and torch.equal(norms, self.norms)
            and torch.equal(tensor[:1, :1], self.row)
        )


class Marked(Protocol):
    """A batch, as far as the listener is concerned."""

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of its documents."""
        ...

    def marks(self, stack: str, length: int) -> Marks:
        """Return which of `length` positions of a stack are real, and which are special."""
        ...


def document_keys(batch: Marked, seed: int) -> Array:
    """Return the keys of the documents of a batch: of the hashes it has, or of their ids."""
    hashes: tuple[int, ...] | None = getattr(batch, "keys", None)
    if hashes is None:
        return named_documents(np.array(batch.documents), seed=seed)
    return keyed_documents(np.array(hashes, dtype=np.uint64), seed=seed)


class Listener:
    """Hears every site of a forward pass and passes on blocks of rows, class by class.

    Nothing of the size of the activations is kept: a block is summed as soon as its site
    has run.
    """

    def __init__(
        self,
        take: Take,
        reject: Callable[[str, str], None],
        meet: Meet | None = None,
        *,
        whole_variants: bool = False,
        times: float = SINK,
        seed: int = 0,
        folded: bool | None = None,
        sketched: bool = True,
        gather: bool = False,
        bands: Array | None = None,
        decode: Callable[[list[int]], str] | None = None,
        repeat: Repeat | None = None,
    ) -> None:
        self.take = take
        self.reject = reject  # called with site and document of numbers that are not finite
        self.meet = meet  # called with documents that have rows in several classes
        self.whole_variants = whole_variants  # blocks are of variants, and rows come again
        self.times = times
        self.seed = seed
        self.folded = folded
        self.sketched = sketched
        self.gather = gather  # few rows of a class wait for those of later batches
        self.bands = bands  # frequency band of each token of the vocabulary
        self.decode = decode  # tokens into words, for the sinks to be named
        self.repeat = repeat  # called with a site that has the tensor of the one before it
        self._order = Order()
        self._batch: Marked | None = None
        self._number = -1  # of the batch
        self._last: Heard | None = None
        self._heard: set[str] = set()  # sites, in this batch
        self._same: dict[str, str] = {}  # site: the one before it, with the same tensor
        self._keys: Array | None = None
        self._known: dict[tuple[str, int], tuple[Positions, Tensor]] = {}
        self._usual: dict[tuple[str, int], dict[str, TensorLayout]] = {}
        self._origins: dict[tuple[str, str], Array] = {}
        self._bad: set[str] = set()
        self._scratch: Tensor | None = None
        self._waiting: dict[tuple[str, str], list[FewRows]] = {}  # by site and class

    def lane(self) -> "Listener":
        """Return a listener for batches that run beside those of this one.

        Both pass on to the same sums, at each site in the order in which batches began.
        """
        beside = copy(self)
        beside._batch = beside._keys = beside._scratch = beside._last = None
        beside._heard, beside._known, beside._usual = set(), {}, {}
        return beside

    def stop(self) -> None:
        """Let every lane fail at its next site."""
        self._order.stop()

    def begin(self, batch: Marked) -> int:
        """Start the next batch, and return its number."""
        self.end()
        self._batch = batch
        self._number = self._order.begin()
        self._keys = document_keys(batch, self.seed)
        self._known.clear()
        self._usual.clear()
        return self._number

    @property
    def has_batch(self) -> bool:
        """Whether a batch is under way."""
        return self._batch is not None

    def hear(self, site: str, tensor: Tensor) -> None:
        """Take the tensor of a site, (documents, positions, width)."""
        with self._order.turn(self._number, site):
            self._hear(site, tensor)

    def _hear(self, site: str, tensor: Tensor) -> None:
        if site in self._bad:
            return
        assert self._batch is not None
        if tensor.shape[0] != len(self._batch.documents):
            raise ConfigError(
                f"expected {len(self._batch.documents)} documents along the first axis of "
                f"{site}, got a tensor of shape {tuple(tensor.shape)}",
                hint="this model puts positions first or regroups documents there; exclude the "
                "site with --sites",
                slug="positions-unknown",
            )
        stack = Site.parse(site).stack
        positions, real = self._positions(stack, tensor.shape[1], tensor.device)
        precise = None if tensor.dtype == torch.float64 else torch.float32
        norms = torch.linalg.vector_norm(tensor, dim=-1, dtype=precise)
        if not self._finite(site, norms, real) or self._repeats(site, tensor, norms):
            return
        found = sinks(norms, real, self.times)
        cut = positions.variants if self.whole_variants else positions.layouts
        if bool(found.any()):
            layouts = cut(found.cpu().numpy(), tensor.device)
        else:  # the same rows as at any other such site of this batch
            place = (stack, tensor.shape[1])
            if place not in self._usual:
                self._usual[place] = cut(None, tensor.device)
            layouts = self._usual[place]
        flat, flat_norms = tensor.reshape(-1, tensor.shape[-1]), norms.reshape(-1)
        blocks: dict[str, TensorBlock | FewRows] = {}
        for name, layout in layouts.items():
            of_sinks = self._sink_rows(name, layout, norms, positions)
            if self.gather and len(layout) < FEW:
                blocks[name] = few = FewRows.of(flat, flat_norms, layout, of_sinks)
                self._wait(site, name, few)
            else:
                blocks[name] = self._pass_on(site, name, flat, flat_norms, layout, of_sinks)
        if self.meet is not None and len(blocks) > 1:
            self._report_meetings(site, blocks, self.meet)

    def _repeats(self, site: str, tensor: Tensor, norms: Tensor) -> bool:
        """Whether a site has the tensor of the one before it, as in every batch so far.

        The norm that ends the last block of a post-norm model returns what the block
        returns: its rows are summed once.
        """
        if self.repeat is None:
            return False
        self._heard.add(site)
        last, source = self._last, self._same.get(site)
        alike = last is not None and last.is_same(tensor, norms)
        if source is not None:
            if not alike or last is None or last.site != source:
                raise NotAlikeError(site)
            return True
        if alike and last is not None and self._number == 0 and self.repeat(site, last.site):
            self._same[site] = last.site
            return True
        self._last = Heard(site, tensor, norms, tensor[:1, :1].clone())
        return False

    def end(self) -> None:
        """End the batch under way, if there is one."""
        if self._batch is None:
            return
        for site, source in self._same.items():
            if (site in self._heard) != (source in self._heard):
                raise NotAlikeError(site)
        self._heard.clear()
        self._last = self._batch = None
        self._order.end(self._number)

    def _report_meetings(
        self, site: str, blocks: "dict[str, TensorBlock | FewRows]", meet: Meet
    ) -> None:
        """Call `meet` with the classes of each variant that has several."""
        met: dict[tuple[str, ...], list[DocumentSums]] = {}
        for variant, classes in VARIANTS.items():
            there = tuple(each for each in classes if each in blocks)
            if len(there) > 1:  # the same list for variants that have the same classes
                seen = [blocks[each].by_document for each in there]
                meet(site, variant, met.setdefault(there, seen))

    def finish(self) -> None:
        """End the last batch, and pass on the rows that still wait for more."""
        self.end()
        while self._waiting:
            self._pass_on_few(*next(iter(self._waiting)))

    def _wait(self, site: str, row_class: str, few: "FewRows") -> None:
        """Keep few rows until there are enough of them: a block costs more than its rows."""
        waiting = self._waiting.setdefault((site, row_class), [])
        waiting.append(few)
        if sum(len(each.layout) for each in waiting) >= ENOUGH:
            self._pass_on_few(site, row_class)

    def _pass_on_few(self, site: str, row_class: str) -> None:
        few = FewRows.join(self._waiting.pop((site, row_class)))
        if site not in self._bad:
            self._pass_on(
                site, row_class, few.rows, few.norms, few.layout, few.sinks, precise=True
            )

    def hear_whole(self, site: str, vectors: Tensor) -> None:
        """Take one vector per document, (documents, width); they are independent rows."""
        with self._order.turn(self._number, site):
            self._hear_whole(site, vectors)

    def _hear_whole(self, site: str, vectors: Tensor) -> None:
        if site in self._bad:
            return
        assert self._keys is not None
        everywhere = torch.ones((len(vectors), 1), dtype=torch.bool, device=vectors.device)
        norms = torch.linalg.vector_norm(vectors, dim=-1, dtype=torch.float32)
        if not self._finite(site, norms[:, None], everywhere):
            return
        layout = TensorLayout(
            self._keys,
            np.zeros(len(vectors), dtype=np.uint64),
            torch.arange(len(vectors), device=vectors.device),
            folded=self.folded,
            independent=True,
        )
        if self.gather and len(layout) < FEW:
            self._wait(site, "all", FewRows.of(vectors, norms, layout, None))
        else:
            self._pass_on(site, "all", vectors, norms, layout)

    def _pass_on(
        self,
        site: str,
        row_class: str,
        flat: Tensor,
        norms: Tensor,
        layout: TensorLayout,
        sinks: SinkRows | None = None,
        *,
        precise: bool = False,
    ) -> TensorBlock:
        block = TensorBlock(
            flat,
            layout,
            origin=self._origins.get((site, row_class)),
            norms=norms,
            sketched=self.sketched,
            precise=precise,  # where rows are few, it costs little
            scratch=self._room(flat, len(layout.pieces.index)),
            sinks=sinks,
        )
        self.take(site, row_class, block)
        self._origins[site, row_class] = block.origin
        return block

    def _sink_rows(
        self, row_class: str, layout: TensorLayout, norms: Tensor, positions: Positions
    ) -> SinkRows | None:
        """Return how strong the sinks of a class are, and their tokens."""
        if "sink" not in row_class:
            return None
        real = torch.from_numpy(positions.real).to(norms.device)
        times = times_median(norms, real).reshape(-1)[layout.index].double().cpu().numpy()
        places = layout.index.cpu().numpy()
        decode = self.decode

        def quote(row: int) -> tuple[str, str]:
            return ("", "") if decode is None else positions.quote(int(places[row]), decode)

        return SinkRows(times, quote)

    def _room(self, flat: Tensor, rows: int) -> Tensor:
        """Return room for the rows of a block: fresh memory for each would cost a twentieth.

        A block is summed when it is taken, so that the next may use the same room.
        """
        kept, size = self._scratch, rows * flat.shape[1]
        # a tensor made in inference mode is not written to outside of it
        expected = (flat.dtype, flat.device, torch.is_inference_mode_enabled())
        if (
            kept is None
            or kept.numel() < size
            or (kept.dtype, kept.device, kept.is_inference()) != expected
        ):
            kept = self._scratch = flat.new_empty(size)
        return kept

    def _positions(
        self, stack: str, length: int, device: torch.device
    ) -> tuple[Positions, Tensor]:
        key = (stack, length)
        if key not in self._known:
            assert self._batch is not None and self._keys is not None
            marks = self._batch.marks(stack, length)
            found = Positions(
                marks.real.cpu().numpy(),
                marks.special.cpu().numpy(),
                self._keys,
                self.folded,
                None if marks.tokens is None else marks.tokens.cpu().numpy(),
                self.bands,
            )
            self._known[key] = found, marks.real.to(device)
        return self._known[key]

    def _finite(self, site: str, norms: Tensor, real: Tensor) -> bool:
        """Whether every row can be measured; a site where one cannot is given up."""
        bad = ~torch.isfinite(norms) & real
        if not bool(bad.any()):
            return True
        assert self._batch is not None
        where = bad.nonzero()[0]
        document = self._batch.documents[int(where[0])]
        self._bad.add(site)
        self.reject(site, f"position {int(where[1])} of document {document!r}")
        return False


@dataclass(frozen=True, eq=False)
class FewRows:
    """Rows of one class of one batch or several, copied out of their tensors."""

    rows: Tensor  # (n, d)
    norms: Tensor  # (n,)
    layout: TensorLayout  # all rows, in their order
    sinks: SinkRows | None

    @classmethod
    def of(
        cls, flat: Tensor, norms: Tensor, layout: TensorLayout, sinks: SinkRows | None
    ) -> "FewRows":
        """Copy the rows of a layout."""
        index = layout.index
        return cls(
            flat.index_select(0, index), norms.index_select(0, index), layout.alone(), sinks
        )

    @classmethod
    def join(cls, parts: "Sequence[FewRows]") -> "FewRows":
        """Return the rows of several batches as one."""
        starts = np.cumsum([0, *(len(each.layout) for each in parts)])
        sinks = [each.sinks for each in parts if each.sinks is not None]

        def quote(row: int) -> tuple[str, str]:
            part = int(np.searchsorted(starts, row, side="right")) - 1
            return sinks[part].quote(row - int(starts[part]))

        return cls(
            torch.cat([each.rows for each in parts]),
            torch.cat([each.norms for each in parts]),
            TensorLayout.join([each.layout for each in parts]),
            SinkRows(np.concatenate([each.times for each in sinks]), quote) if sinks else None,
        )

    @lazy
    def by_document(self) -> DocumentSums:
        """The sums of each document."""
        rows = self.rows.double().cpu().numpy()  # (n, d)
        norms = np.sqrt(np.vecdot(rows, rows))[:, None]
        units = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
        starts = self.layout.runs[:-1]
        return DocumentSums(
            keys=self.layout.documents[starts],
            units=np.add.reduceat(units, starts),
            total=np.add.reduceat(rows, starts),
            nonzero=np.add.reduceat((norms[:, 0] > 0).astype(np.float64), starts),
            rows=np.diff(self.layout.runs).astype(np.float64),
        )
