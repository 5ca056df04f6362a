"""parquet: read in small batches, however large its row groups are."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from isoscope.source.batch import Converter, first_width
from isoscope.source.border import border
from isoscope.source.feed import Feed, peeked
from isoscope.source.magic import PARQUET, wrong_kind
from isoscope.source.schema import Layout, layout
from isoscope.source.shape import DECODED_BYTES, no_rows, rows_per_chunk
from isoscope.source.source import Source, Tally, Wanted
from isoscope.types import Chunk

KIND = "a parquet file"


def open_parquet(feed: Feed, wanted: Wanted) -> Source:
    """The rows of the vector column, or columns, of a parquet file."""
    path, place = cast(Path, feed.path), feed.place
    head = peeked(feed, 16)
    if not head.startswith(PARQUET):
        raise wrong_kind(place, KIND, head)
    with border(place, KIND), _opened(path) as file:
        rows: int = file.metadata.num_rows
        plan = layout(file.schema_arrow, wanted, place)
        if rows == 0:
            raise no_rows(place)
        d = plan.width or first_width(_batches(file, plan, 64), plan.vector[0], place)
    converter = Converter(plan, d, feed.name, place, wanted.skip_bad)
    most = rows_per_chunk(d, plan.dtype, DECODED_BYTES)

    def read(limit: int, tally: Tally) -> Iterator[Chunk]:
        start = 0
        with border(place, KIND), _opened(path) as file:
            for batch in _batches(file, plan, min(limit, most)):
                yield converter.chunk(batch, start, tally)
                start += len(batch)

    return Source(
        feed.name, d, rows, feed.rereadable, plan.dtype, place, read,
        lambda: feed.stamp(",".join(plan.vector)), has_documents="document" in plan.labels,
    )  # fmt: skip


def _opened(path: Path) -> Any:
    import pyarrow.parquet as pq

    # Mapped and without pre_buffer, pages are decoded one by one where they lie. Read
    # through a buffer, a page that claims 2 GB would be given 2 GB.
    return pq.ParquetFile(path, memory_map=True, pre_buffer=False)


def _batches(file: Any, plan: Layout, rows: int) -> Iterator[Any]:
    return file.iter_batches(batch_size=rows, columns=plan.names, use_threads=False)
