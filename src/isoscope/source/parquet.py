"""parquet: read in small batches, however large its row groups are."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, cast

from isoscope.source.batch import Converter, first_width
from isoscope.source.border import border
from isoscope.source.feed import Feed, peeked
from isoscope.source.labels import DOCUMENTS_PER_CHUNK
from isoscope.source.magic import PARQUET, wrong_kind
from isoscope.source.schema import layout
from isoscope.source.shape import DECODED_BYTES, no_rows, rows_per_chunk
from isoscope.source.source import Seek, Source, Tally, Wanted
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
        d = plan.width or first_width(_batches(file, plan.names, 64), plan.vector[0], place)
        starts = _starts(file.metadata)
    converter = Converter(plan, d, feed.name, place, wanted.skip_bad)
    most = rows_per_chunk(d, plan.dtype, DECODED_BYTES)

    def read(
        limit: int, tally: Tally, start: int = 0, stop: int | None = None
    ) -> Iterator[Chunk]:
        with border(place, KIND), _opened(path) as file:
            groups = _groups(file.metadata, start, stop)
            for batch in _batches(file, plan.names, min(limit, most), groups):
                yield converter.chunk(batch, start, tally)
                start += len(batch)

    def documents() -> Iterator[Chunk]:
        start = 0
        with border(place, KIND), _opened(path) as file:
            for batch in _batches(file, [plan.labels["document"]], DOCUMENTS_PER_CHUNK):
                yield converter.documents(batch, start)
                start += len(batch)

    return Source(
        feed.name, d, rows, feed.rereadable, plan.dtype, place, read,
        lambda: feed.stamp(",".join(plan.vector)), has_documents="document" in plan.labels,
        seek=Seek(starts, read), drops=wanted.skip_bad,
        documents=documents if "document" in plan.labels else None,
    )  # fmt: skip


def _opened(path: Path) -> Any:
    import pyarrow.parquet as pq

    # Mapped and without pre_buffer, pages are decoded one by one where they lie. Read
    # through a buffer, a page that claims 2 GB would be given 2 GB.
    return pq.ParquetFile(path, memory_map=True, pre_buffer=False)


def _batches(
    file: Any, columns: list[str], rows: int, groups: list[int] | None = None
) -> Iterator[Any]:
    return file.iter_batches(
        batch_size=rows, row_groups=groups, columns=columns, use_threads=False
    )


def _starts(metadata: Any) -> tuple[int, ...]:
    """The first row of each row group: pages are decoded from there on, not from before."""
    ends = list(accumulate(_sizes(metadata)))
    if not ends or ends[-1] != metadata.num_rows:
        return (0,)
    return tuple(sorted({0, *ends[:-1]} - {ends[-1]}))


def _groups(metadata: Any, start: int, stop: int | None) -> list[int] | None:
    """The row groups that hold the rows between two starts; None for all of them."""
    if start == 0 and stop is None:
        return None
    ends = list(accumulate(_sizes(metadata)))
    last = ends[-1] if stop is None else stop
    return [i for i, end in enumerate(ends) if start < end <= last]


def _sizes(metadata: Any) -> list[int]:
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
