"""The listener: reduces what a site passes on in a forward pass to blocks of rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate.sums import DocumentSums, SinkRows, lazy
from isoscope.capture.feed.marks import Marks
from isoscope.capture.positions import SINK, Positions, sinks, times_median
from isoscope.capture.tensor_block import TensorBlock, TensorLayout
from isoscope.errors import ConfigError
from isoscope.hashing import named_documents
from isoscope.site import Site
from isoscope.types import VARIANTS, Array

FEW = 512  # rows of a class that are too few for a block of their own
ENOUGH = 2048  # rows that are enough for one
Take = Callable[[str, str, TensorBlock], None]  # site, class of rows or variant, block
Meet = Callable[[str, str, list[DocumentSums]], None]  # site, variant, its classes


class Marked(Protocol):
    """A batch, as far as the listener is concerned."""

    @property
    def documents(self) -> tuple[str, ...]:
        """The ids of its documents."""
        ...

    def marks(self, stack: str, length: int) -> Marks:
        """Return which of `length` positions of a stack are real, and which are special."""
        ...


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
        self._batch: Marked | None = None
        self._keys: Array | None = None
        self._known: dict[tuple[str, int], tuple[Positions, Tensor]] = {}
        self._usual: dict[tuple[str, int], dict[str, TensorLayout]] = {}
        self._origins: dict[tuple[str, str], Array] = {}
        self._bad: set[str] = set()
        self._scratch: Tensor | None = None
        self._waiting: dict[tuple[str, str], list[FewRows]] = {}  # by site and class

    def begin(self, batch: Marked) -> None:
        """Start the next batch."""
        self._batch = batch
        self._keys = named_documents(list(batch.documents), seed=self.seed)  # type: ignore
        self._known.clear()
        self._usual.clear()

    def hear(self, site: str, tensor: Tensor) -> None:
        """Take the tensor of a site, (documents, positions, width)."""
        if site in self._bad:
            return
        self._check_documents(site, tensor)
        stack = Site.parse(site).stack
        positions, real = self._positions(stack, tensor.shape[1], tensor.device)
        precise = None if tensor.dtype == torch.float64 else torch.float32
        norms = torch.linalg.vector_norm(tensor, dim=-1, dtype=precise)
        if not self._finite(site, norms, real):
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
            met: dict[tuple[str, ...], list[DocumentSums]] = {}
            for variant, classes in VARIANTS.items():
                there = tuple(each for each in classes if each in blocks)
                if len(there) > 1:  # the same list for variants that have the same classes
                    seen = [blocks[each].by_document for each in there]
                    self.meet(site, variant, met.setdefault(there, seen))

    def finish(self) -> None:
        """Pass on the rows that still wait for more."""
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
            self._pass_on(site, row_class, few.rows, few.norms, few.layout, few.sinks)

    def hear_whole(self, site: str, vectors: Tensor) -> None:
        """Take one vector per document, (documents, width); they are independent rows."""
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
        self._pass_on(site, "all", vectors, norms, layout)

    def _pass_on(
        self,
        site: str,
        row_class: str,
        flat: Tensor,
        norms: Tensor,
        layout: TensorLayout,
        sinks: SinkRows | None = None,
    ) -> TensorBlock:
        block = TensorBlock(
            flat,
            layout,
            origin=self._origins.get((site, row_class)),
            norms=norms,
            sketched=self.sketched,
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

    def _check_documents(self, site: str, tensor: Tensor) -> None:
        assert self._batch is not None
        if tensor.shape[0] != len(self._batch.documents):
            raise ConfigError(
                f"expected {len(self._batch.documents)} documents along the first axis of "
                f"{site}, got a tensor of shape {tuple(tensor.shape)}",
                hint="this model puts positions first or regroups documents there; exclude the "
                "site with --sites",
                slug="positions-unknown",
            )

    def _positions(
        self, stack: str, length: int, device: torch.device
    ) -> tuple[Positions, Tensor]:
        key = (stack, length)
        if key not in self._known:
            assert self._batch is not None and self._keys is not None
            marks = self._batch.marks(stack, length)
            real = marks.real.to(device)
            tokens = marks.tokens
            found = Positions(
                marks.real.cpu().numpy(),
                marks.special.cpu().numpy(),
                self._keys,
                self.folded,
                None if tokens is None else tokens.cpu().numpy(),
                self.bands,
            )
            self._known[key] = found, real
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
