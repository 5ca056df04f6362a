"""What a survey runs: which documents in which batches, which sites, and in how many turns.

Everything follows from the corpus and the settings alone, so that a run that was killed, or
is spread over machines, does the same work in the same portions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import accumulate, islice
from math import ceil
from typing import TYPE_CHECKING

from isoscope.accumulate.block import sketch_rank
from isoscope.accumulate.reservoir import SIZE
from isoscope.accumulate.row_bands import FREQUENCIES, POSITIONS
from isoscope.accumulate.vocabulary import KEPT, SAMPLED, TYPES
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, SourceError, TooFewRowsError
from isoscope.hashing import GROUPS
from isoscope.memory import as_bytes, free_memory
from isoscope.site import DECODER, POOLED, is_matrix
from isoscope.source.corpus.corpus import Corpus
from isoscope.study.frequency import Frequencies, read_frequencies
from isoscope.study.model import ModelSites

if TYPE_CHECKING:
    from isoscope.capture.feed import Batch, Feed, Prepared
    from isoscope.capture.model.pooling import Pooling

UNIT_ROWS = 32_768  # of a unit, at least, unless it is the only one
MOST_UNIT_ROWS = 131_072
PARTS = 4  # units of a corpus of usual size
UNIT_WORK = 3e12  # rows of a unit times weights, at least: a minute of two cores
SMALL_UNIT_ROWS = 262_144  # rows of a unit of a model however small, at most
BATCH_DOCUMENTS = 32
BATCH_POSITIONS = 2048  # padding included; larger batches are no faster
PREPARED = 8 << 20  # bytes of documents that are kept as they go into a model
ROW_CLASSES = 2  # that usually occur at a site: ordinary and special, or ordinary and sink


@dataclass(frozen=True, slots=True)
class Item:
    """A document as a schedule sees it."""

    ordinal: int
    length: int  # rows it will give
    cost: int  # positions it takes up in a batch at least


@dataclass
class Selection:
    """The documents that were taken, and how many were cut or passed over."""

    items: list[Item] = field(default_factory=list[Item])
    rows: int = 0
    truncated: int = 0
    short: int = 0  # fewer than two positions
    bad: list[str] = field(default_factory=list[str])
    prepared: "dict[int, Prepared]" = field(default_factory=dict)
    _bytes: int = 0  # of these

    def keep(self, ordinal: int, prepared: "Prepared") -> None:
        """Keep a document as it goes into a model, so that it is tokenised once.

        Those that are too large are prepared again: sounds, images and very many texts.
        """
        parts = (*prepared.inputs.values(), *prepared.special.values())
        size = sum(part.nbytes for part in parts)
        if self._bytes + size <= PREPARED:
            self.prepared[ordinal] = prepared
            self._bytes += size

    def warnings(self) -> list[str]:
        """Return what a reader of the run should know."""
        taken, bad = len(self.items), len(self.bad)
        counted = (
            (self.truncated, f"{self.truncated} of {taken} documents were truncated"),
            (self.short, f"{self.short} documents shorter than two tokens were skipped"),
            (bad, f"{bad} documents could not be read and were skipped"),
        )
        return [text for count, text in counted if count]


def select_documents(
    corpus: Corpus,
    feed: "Feed",
    frequencies: Frequencies,
    *,
    seed: int,
    tokens: int | None,
    skip_bad: bool = False,
) -> Selection:
    """Draw documents until there are enough tokens, and count their tokens."""
    found = Selection()
    for ordinal in map(int, corpus.order(seed)):
        if tokens is not None and found.rows >= tokens:
            break
        try:
            prepared = feed.prepare(corpus.document(ordinal))
        except SourceError as error:
            if not skip_bad:
                raise
            found.bad.append(error.problem)
            continue
        if prepared is None:
            found.short += 1
            continue
        frequencies.see(prepared.inputs)
        found.keep(ordinal, prepared)
        found.items.append(Item(ordinal, prepared.length, prepared.cost))
        found.rows += prepared.length
        found.truncated += bool(prepared.truncated)
    if not found.items:
        raise _too_short(
            corpus, "use a corpus with longer documents; --per=file takes a whole file as one"
        )
    return found


def _too_short(corpus: Corpus, hint: str) -> TooFewRowsError:
    return TooFewRowsError(
        f"expected documents of at least two tokens in {corpus.place or corpus.name}, "
        f"got none in {len(corpus)}",
        hint=hint,
        slug="corpus-short",
    )


def has_tokens(subject: ModelSites) -> bool:
    """Whether some rows of a model are of tokens: it reads text, or writes it."""
    return subject.loaded.takes == "text" or subject.last == DECODER


def frequencies_for(subject: ModelSites, table: str | None) -> Frequencies:
    """Return the counts of tokens a table gives, or room to count them."""
    if table is None:
        return Frequencies()
    if not has_tokens(subject):
        raise ConfigError(
            f"expected a model of text for --frequencies, got {subject.loaded.name}",
            hint="sounds and images have no tokens: do not set --frequencies",
            slug="frequency-table",
        )
    size = getattr(subject.loaded.body.config, "vocab_size", None)
    known = subject.loaded.tokenizer
    return read_frequencies(
        table, known, int(size or (len(known.get_vocab()) if known is not None else 0))
    )


def pooling_for(subject: ModelSites, mode: str | None) -> "Pooling | None":
    """Return how tokens become one vector: as an option says, or as the model does."""
    from isoscope.capture.model.pooling import Pooling

    if mode is None:
        return subject.loaded.pooling
    if subject.loaded.takes != "text" or subject.last == DECODER:
        raise ConfigError(
            f"cannot pool the tokens of {subject.loaded.name}",
            hint="--pooling is for text models with one stack",
            slug="pooling",
        )
    return Pooling(mode=mode)


def select_sites(
    subject: ModelSites, families: Sequence[str] | None, pooled: bool, width: int | None = None
) -> tuple[str, ...]:
    """Return the sites that families name, or the usual ones.

    A width to cut pooled vectors to is refused where there are none.
    """
    names = list(families) if families else list(subject.sites.DEFAULT)
    if POOLED in names and not pooled:
        raise ConfigError(
            f"expected a model that says how its tokens are pooled, got {subject.loaded.name}",
            hint="choose a --pooling: mean, cls, last or max",
            slug="pooling",
        )
    plain = [each for each in names if each != POOLED]
    sites = subject.sites.select(plain) if plain else ()
    if pooled and (not families or POOLED in names):
        sites = (*sites, POOLED)
    if width is not None and POOLED not in sites:
        raise ConfigError(
            "cannot cut pooled vectors where none are surveyed",
            hint="--truncate-dim needs a --pooling, and pooled among the --sites",
            slug="pooling",
        )
    return sites


def turns_for(
    subject: ModelSites, sites: tuple[str, ...], turns: int | None, say: Callable[[str], None]
) -> int:
    """Return in how many turns the sites are done, and say so where it is more than one."""
    widths = [subject.sites.widths.get(site, 0) for site in sites if not is_matrix(site)]
    needed, free = sum(ROW_CLASSES * site_bytes(width) for width in widths), free_memory()
    if turns is None:
        turns = max(1, -(-needed * 2 // max(free, 1)))
    turns = min(turns, max(len(widths), 1))  # a turn without a site would run for nothing
    if turns > 1 or needed > 2**30:
        say(
            f"the state of {len(widths)} sites takes {as_bytes(needed)}, "
            f"{as_bytes(free)} are free: done in {turns} turn{'s' * (turns > 1)}"
        )
    return turns


def schedule(
    items: Iterable[Item],
    *,
    unit_rows: int | None = None,
    documents: int = BATCH_DOCUMENTS,
    positions: int = BATCH_POSITIONS,
    mixed: bool = True,
    weights: int | None = None,
) -> list[list[list[int]]]:
    """Return units, each a list of batches, each a list of ordinals.

    A unit has a quarter of the rows, within bounds: what it costs to end one and to join it
    with others does not go with its size. For a small model, whose `weights` are counted
    without tables of tokens, it has as many as take about a minute. Within a unit documents
    are sorted by length, so that a batch has little padding. Where lengths may not be
    `mixed`, a batch has documents of one length only.
    """
    items = list(items)
    units = _even_units(items, weights) if unit_rows is None else _units(items, unit_rows)

    def ends_batch(batch: list[Item], item: Item) -> bool:
        longest = batch[0].cost  # the first is the longest, and all are padded to it
        full = len(batch) == documents or (len(batch) + 1) * longest > positions
        return full or (not mixed and item.cost != longest)

    by_length = [sorted(unit, key=lambda each: (-each.cost, -each.length)) for unit in units]
    return [
        [[each.ordinal for each in batch] for batch in _cut(unit, ends_batch)]
        for unit in by_length
    ]


def _even_units(items: Sequence[Item], weights: int | None) -> list[list[Item]]:
    """Return consecutive items in units of about the same number of rows."""
    ends = list(accumulate(each.length for each in items))
    total = ends[-1] if ends else 0
    number = max(min(PARTS, ceil(total / UNIT_ROWS)), ceil(total / MOST_UNIT_ROWS))
    if weights is not None:
        least = min(UNIT_WORK / max(weights, 1), SMALL_UNIT_ROWS)
        number = min(number, ceil(total / max(least, UNIT_ROWS)))
    found: list[list[Item]] = [[] for _ in range(number)]
    for item, end in zip(items, ends, strict=True):  # a document belongs where its middle is
        found[int((end - item.length / 2) * number / total)].append(item)
    return [unit for unit in found if unit]


def _units(items: Iterable[Item], rows: int) -> Iterator[list[Item]]:
    """Yield consecutive items of at most so many rows together, or one that has more."""
    unit: list[Item] = []
    held = 0
    for item in items:
        if unit and held + item.length > rows:
            yield unit
            unit, held = [], 0
        unit.append(item)
        held += item.length
    if unit:
        yield unit


def _cut(
    items: Iterable[Item], ends: Callable[[list[Item], Item], bool]
) -> Iterator[list[Item]]:
    """Yield consecutive items, cut where an item would not fit with those before it."""
    part: list[Item] = []
    for item in items:
        if part and ends(part, item):
            yield part
            part = []
        part.append(item)
    if part:
        yield part


def site_bytes(d: int) -> int:
    """Return the bytes of one site and class of rows.

    Two scatters of d x d doubles, for each of 32 groups its sums and its scatter seen from
    a few directions, the rows of the reservoir, and what is kept by token type and band.
    """
    scatters = 2 * d * d * 8
    groups = GROUPS * d * (sketch_rank(d) * 4 * 2 + 3 * 8)  # held twice until it is settled
    types = TYPES * (8 * d + 24)
    occurrences = SAMPLED * KEPT * (4 * d + 16)
    bands = GROUPS * len(FREQUENCIES) * POSITIONS * (4 * d + 8)
    return scatters + groups + SIZE * d * 4 + types + occurrences + bands


def prepare_document(
    corpus: Corpus, feed: "Feed", ordinal: int, prepared: "Prepared | None" = None
) -> "Prepared | None":
    """Return a document as it goes into a model, with its key; None if it is too short."""
    prepared = prepared or feed.prepare(corpus.document(ordinal))
    return None if prepared is None else replace(prepared, key=corpus.key(ordinal))


def prepare_documents(
    corpus: Corpus, feed: "Feed", *, documents: int | None = None, seed: int | None = None
) -> "list[tuple[int, Prepared]]":
    """Return prepared documents with their ordinals; those that are too short are skipped.

    In the order of the corpus, or in one drawn by a seed, at most as many as `documents`.
    """
    order = range(len(corpus)) if seed is None else map(int, corpus.order(seed))
    prepared = ((ordinal, prepare_document(corpus, feed, ordinal)) for ordinal in order)
    usable = ((ordinal, ready) for ordinal, ready in prepared if ready is not None)
    found = list(islice(usable, documents))
    if not found:
        raise _too_short(corpus, "give a corpus with longer documents")
    return found


def batches_of(prepared: "Sequence[Prepared]", feed: "Feed", size: int) -> "Iterator[Batch]":
    """Yield batches of neighbours; of one document each where padding would change them."""
    step = size if feed.mixes_lengths else 1
    for start in range(0, len(prepared), step):
        yield feed.batch(prepared[start : start + step])
