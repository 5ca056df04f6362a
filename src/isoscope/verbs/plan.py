"""The plan of a study: which documents, which sites, and the portions the work is cut into."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from isoscope.errors import ConfigError, TooFewRowsError
from isoscope.survey import kinds_for
from isoscope.survey.frequency import Frequencies, read_frequencies
from isoscope.survey.schedule import UNIT_ROWS, scheduled
from isoscope.survey.select import Selection, selected

if TYPE_CHECKING:
    from isoscope.verbs.model import Found

WEIGHT = ".weight"  # how sites that are matrices end
POOLED = "pooled"


def chosen_documents(
    corpus: Any, feed: Any, given: Mapping[str, Any], frequencies: Frequencies
) -> Selection:
    """Draw documents until there are tokens enough, and count their tokens."""

    def prepare(ordinal: int) -> Any:
        prepared = feed.prepare(corpus.document(ordinal))
        if prepared is not None:
            frequencies.see(prepared.inputs)
        return prepared

    selection = selected(
        corpus.order(given["seed"]),
        prepare,
        tokens=given["tokens"],
        skip_bad=given["skip_bad"],
    )
    if not selection.items:
        raise TooFewRowsError(
            f"expected documents of at least two tokens in {corpus.place or corpus.name}, "
            f"got none in {len(corpus)}",
            hint="give a corpus with longer documents; --per file takes a whole file as one",
            slug="corpus-short",
        )
    return selection


def has_tokens(found: "Found") -> bool:
    """Whether some rows of a model are of tokens: it reads text, or writes it."""
    writes = any(name.startswith("dec.") for name in found.sites.names)
    return found.loaded.takes == "text" or writes


def frequencies_for(found: "Found", table: Any) -> Frequencies:
    """Return the counts of tokens a table gives, or room to count them."""
    if table is None:
        return Frequencies()
    if not has_tokens(found):
        raise ConfigError(
            f"expected a model of text for --frequencies, got {found.loaded.name}",
            hint="sounds and images have no tokens; leave --frequencies out",
            slug="frequency-table",
        )
    size = getattr(found.loaded.body.config, "vocab_size", None)
    known = found.loaded.tokenizer
    return read_frequencies(table, known, int(size or (len(known) if known else 0)))


def pooling_for(found: "Found", mode: str | None) -> Any:
    """Return how tokens become one vector: as asked for, or as the model says itself."""
    from isoscope.capture.model.pooling import Pooling

    if mode is None:
        return found.loaded.pooling
    known = ("mean", "cls", "last", "max")
    if mode not in known:
        from isoscope.registry import unknown

        raise unknown("pooling", mode, known)
    if found.loaded.takes != "text" or any(n.startswith("dec.") for n in found.sites.names):
        raise ConfigError(
            f"cannot pool the tokens of {found.loaded.name}",
            hint="--pooling is for text models with one stack",
            slug="pooling",
        )
    return Pooling(mode=mode)


def chosen_sites(found: "Found", families: Any, pooled: bool) -> tuple[str, ...]:
    """Return the sites that were asked for, or the usual ones."""
    wanted = list(families) if families else list(found.sites.DEFAULT)
    if POOLED in wanted and not pooled:
        raise ConfigError(
            f"expected a model that says how its tokens are pooled, got {found.loaded.name}",
            hint="say it: --pooling mean, cls, last or max",
            slug="pooling",
        )
    plain = [each for each in wanted if each != POOLED]
    sites = found.sites.chosen(plain) if plain else ()
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


def turns_for(found: "Found", sites: tuple[str, ...], given: Mapping[str, Any]) -> int:
    """Return in how many turns the sites are done, and say so where it is more than one."""
    from isoscope.survey.room import as_bytes, available, state_bytes

    widths = [found.sites.widths.get(site, 0) for site in sites if not site.endswith(WEIGHT)]
    needed, free = state_bytes(widths), available()
    turns = given["turns"]
    if turns is None:
        turns = min(max(1, -(-needed * 2 // max(free, 1))), max(len(widths), 1))
    if given["say"] is not None and (turns > 1 or needed > 2**30):
        given["say"](
            f"the state of {len(widths)} sites takes {as_bytes(needed)}, "
            f"{as_bytes(free)} are free: done in {turns} turn{'s' * (turns > 1)}"
        )
    return turns


def tasks_for(
    found: "Found",
    corpus: Any,
    selection: Selection,
    sites: tuple[str, ...],
    turns: int,
    mixed: bool,
    given: Mapping[str, Any],
    names: tuple[str, ...],
    frequencies: Frequencies,
) -> list[dict[str, Any]]:
    """Return the work, cut into portions that follow from the arguments alone."""
    import torch

    units = scheduled(
        selection.items,
        unit_rows=given["unit"] or UNIT_ROWS,
        documents=given["batch"],
        mixed=mixed,
    )
    kinds = kinds_for(names, causes=True)
    heard = [site for site in sites if not site.endswith(WEIGHT)]
    matrices = [site for site in sites if site.endswith(WEIGHT)]
    shared = {
        "model": found.loaded.identity["sha"],
        "config": found.loaded.identity["config"],
        "tokenizer": found.loaded.identity["tokenizer"],
        "dtype": found.loaded.identity["dtype"],
        "untrained": found.loaded.identity["untrained"],
        "corpus": corpus.fingerprint,
        "seed": given["seed"],
        "length": given["length"],
        "sinks": given["sinks"],
        "prompt": given["prompt"],
        "pooling": given["pooling"],
        "truncate_dim": given["truncate_dim"],
        "frequencies": frequencies.digest,
        "kinds": sorted(kind.__name__ for kind in kinds),
    }
    tasks = [
        {
            **shared,
            "sites": heard[turn::turns],
            "batches": batches,
            "threads": torch.get_num_threads(),
        }
        for turn in range(turns)
        for batches in units
        if heard[turn::turns]
    ]
    if matrices:
        tasks.append({**shared, "weights": matrices})
    return tasks
