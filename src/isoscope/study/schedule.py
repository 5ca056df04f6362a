"""Which documents are run together: units that are done whole, and batches within them.

Both follow from the documents and the settings alone, so that a run that was killed, or is
spread over machines, does the same work in the same portions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

UNIT_ROWS = 32_768  # positions of a unit: a minute of a small model on a laptop
BATCH_DOCUMENTS = 32
BATCH_POSITIONS = 8_192  # padding included


@dataclass(frozen=True, slots=True)
class Item:
    """A document as a schedule sees it."""

    ordinal: int
    length: int  # rows it will give
    cost: int  # positions it takes up in a batch at least


def scheduled(
    items: Iterable[Item],
    *,
    unit_rows: int = UNIT_ROWS,
    documents: int = BATCH_DOCUMENTS,
    positions: int = BATCH_POSITIONS,
    mixed: bool = True,
) -> list[list[list[int]]]:
    """Return units, each a list of batches, each a list of ordinals.

    Within a unit documents are sorted by length, so that a batch has little padding.
    Where lengths may not be `mixed`, a batch has documents of one length only.
    """
    return [
        list(_batches(unit, documents, positions, mixed)) for unit in _units(items, unit_rows)
    ]


def _units(items: Iterable[Item], rows: int) -> Iterator[list[Item]]:
    unit: list[Item] = []
    for item in items:
        if unit and sum(each.length for each in unit) + item.length > rows:
            yield unit
            unit = []
        unit.append(item)
    if unit:
        yield unit


def _batches(
    unit: Sequence[Item], documents: int, positions: int, mixed: bool
) -> Iterator[list[int]]:
    batch: list[Item] = []
    for item in sorted(unit, key=lambda each: (-each.cost, -each.length)):
        full = len(batch) == documents
        if batch:  # the first is the longest, and all are padded to it
            full |= (len(batch) + 1) * batch[0].cost > positions
            full |= not mixed and item.cost != batch[0].cost
        if full:
            yield [each.ordinal for each in batch]
            batch = []
        batch.append(item)
    if batch:
        yield [each.ordinal for each in batch]
