"""What a survey runs: which documents, which sites, how pooled, and in how many turns."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from isoscope.errors import ConfigError, TooFewRowsError
from isoscope.site import DECODER, POOLED, is_matrix
from isoscope.study.frequency import Frequencies, read_frequencies
from isoscope.study.select import Selection, selected

if TYPE_CHECKING:
    from isoscope.capture.feed import Feed, Prepared
    from isoscope.capture.model.pooling import Pooling
    from isoscope.source.corpus.corpus import Corpus
    from isoscope.study.model import Subject


def select_documents(
    corpus: "Corpus",
    feed: "Feed",
    frequencies: Frequencies,
    *,
    seed: int,
    tokens: int | None,
    skip_bad: bool,
) -> Selection:
    """Draw documents until there are tokens enough, and count their tokens."""

    def prepare(ordinal: int) -> "Prepared | None":
        prepared = feed.prepare(corpus.document(ordinal))
        if prepared is not None:
            frequencies.see(prepared.inputs)
        return prepared

    selection = selected(
        corpus.order(seed),
        prepare,
        tokens=tokens,
        skip_bad=skip_bad,
    )
    if not selection.items:
        raise TooFewRowsError(
            f"expected documents of at least two tokens in {corpus.place or corpus.name}, "
            f"got none in {len(corpus)}",
            hint="give a corpus with longer documents; --per file takes a whole file as one",
            slug="corpus-short",
        )
    return selection


def has_tokens(subject: "Subject") -> bool:
    """Whether some rows of a model are of tokens: it reads text, or writes it."""
    return subject.loaded.takes == "text" or subject.last == DECODER


def frequencies_for(subject: "Subject", table: str | None) -> Frequencies:
    """Return the counts of tokens a table gives, or room to count them."""
    if table is None:
        return Frequencies()
    if not has_tokens(subject):
        raise ConfigError(
            f"expected a model of text for --frequencies, got {subject.loaded.name}",
            hint="sounds and images have no tokens; leave --frequencies out",
            slug="frequency-table",
        )
    size = getattr(subject.loaded.body.config, "vocab_size", None)
    known = subject.tokenizer
    return read_frequencies(table, known, int(size or (len(known) if known else 0)))


def pooling_for(subject: "Subject", mode: str | None) -> "Pooling | None":
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
    subject: "Subject", families: Sequence[str] | None, pooled: bool
) -> tuple[str, ...]:
    """Return the sites that families name, or the usual ones."""
    wanted = list(families) if families else list(subject.sites.DEFAULT)
    if POOLED in wanted and not pooled:
        raise ConfigError(
            f"expected a model that says how its tokens are pooled, got {subject.loaded.name}",
            hint="say it: --pooling mean, cls, last or max",
            slug="pooling",
        )
    plain = [each for each in wanted if each != POOLED]
    sites = subject.sites.chosen(plain) if plain else ()
    if pooled and (not families or POOLED in wanted):
        sites = (*sites, POOLED)
    return sites


def check_truncation(sites: tuple[str, ...], width: int | None) -> None:
    """Refuse a width for pooled vectors where there are none."""
    if width is not None and POOLED not in sites:
        raise ConfigError(
            "cannot cut pooled vectors where none are surveyed",
            hint="--truncate-dim goes with --pooling MODE, and with pooled among the --sites",
            slug="pooling",
        )


def turns_for(
    subject: "Subject", sites: tuple[str, ...], turns: int | None, say: Callable[[str], None]
) -> int:
    """Return in how many turns the sites are done, and say so where it is more than one."""
    from isoscope.study.memory import as_bytes, available, state_bytes

    widths = [subject.sites.widths.get(site, 0) for site in sites if not is_matrix(site)]
    needed, free = state_bytes(widths), available()
    if turns is None:
        turns = min(max(1, -(-needed * 2 // max(free, 1))), max(len(widths), 1))
    if turns > 1 or needed > 2**30:
        say(
            f"the state of {len(widths)} sites takes {as_bytes(needed)}, "
            f"{as_bytes(free)} are free: done in {turns} turn{'s' * (turns > 1)}"
        )
    return turns
