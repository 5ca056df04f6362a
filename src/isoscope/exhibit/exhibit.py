"""A run, or readings at hand, made into what a page shows."""

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TypeAlias, cast

from isoscope.accumulate import Vocabulary, accumulator_of
from isoscope.blas import one_blas_thread
from isoscope.display import READINGS, Results
from isoscope.display.page.section import Drawn, Exhibit, Section
from isoscope.errors import ConfigError, StoreError
from isoscope.exhibit.curves import TokenCounts, curves_of, matrix_cells
from isoscope.measures import MEASURES, level
from isoscope.site import is_matrix
from isoscope.store.origin import Identity, Settings
from isoscope.store.run import Run, load
from isoscope.study.experiment import known_experiments
from isoscope.study.forks import map_in_fork
from isoscope.study.measure_choice import WIDE, options_of
from isoscope.types import Curve, Reading

NOUNS = {"text": "tokens", "tokens": "tokens", "audio": "frames", "image": "patches"}
COSTLY = 40e9  # d^3 summed over places, from which on some sites go without a spectrum
Effective = dict[tuple[str, str], float]
Shown: TypeAlias = Run | Results[Reading] | Exhibit  # what a page is made of
Source: TypeAlias = "str | os.PathLike[str] | Shown"


def sections() -> list[Section]:
    """Return the sections of a page: those of every run, and those that experiments bring."""
    from isoscope.display.section import SECTIONS

    verdict, *usual = SECTIONS
    brought = [each.section for each in known_experiments() if each.section is not None]
    first = [each for each in brought if each.first]
    return [verdict, *first, *usual, *(each for each in brought if not each.first)]


def opened(runs: "Source | Iterable[Source]") -> "list[Shown]":
    """Return runs with their readings: of folders, loaded runs, readings, or exhibits."""
    one = isinstance(runs, str | os.PathLike | Run | Results | Exhibit)  # Results are a list
    loaded = [_open(each) for each in cast("list[Source]", [runs] if one else runs)]
    if not loaded:
        raise ConfigError(
            "a report needs at least 1 run, got 0",
            hint="name a run folder written by -o",
            slug="nothing-to-report",
        )
    return loaded


@contextmanager
def checked_meanwhile(shown: "Sequence[Shown]") -> Generator[None]:
    """Compare the checksums of states while something else is done.

    Whoever reads a state that is damaged is told so; here nobody is.
    """

    def check() -> None:
        for each in shown:
            if isinstance(each, Run):
                with suppress(StoreError):
                    each.check_state()

    thread = Thread(target=check, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def exhibits(runs: "Source | Iterable[Source]") -> list[Exhibit]:
    """Return what is shown of each run: folders, loaded runs, readings, or exhibits."""
    loaded = opened(runs)
    names = _distinct_names(loaded)
    return [_exhibit(each, name) for each, name in zip(loaded, names, strict=True)]


def _open(source: Source) -> Shown:
    if isinstance(source, Results) and source.layout.name != READINGS.name:
        raise ConfigError(
            f"a report shows runs and readings, got {source.layout.name}",
            hint="name the run folder itself; its page shows causes and dimensions too",
            slug="report-other-records",
        )
    return source if isinstance(source, Run | Results | Exhibit) else load(source)


def _name(each: Shown) -> str:
    if isinstance(each, Exhibit):
        return each.name
    if isinstance(each, Run):
        return each.path.resolve().name
    return next((reading.run for reading in each if reading.run), "readings")


def _distinct_names(loaded: Sequence[Shown]) -> list[str]:
    """Return names that distinguish runs: with their folder, then with a number."""
    names = [_name(each) for each in loaded]
    longer = [
        f"{each.path.resolve().parent.name}/{name}"
        if names.count(name) > 1 and isinstance(each, Run)
        else name
        for name, each in zip(names, loaded, strict=True)
    ]
    return [
        f"{name} ({longer[: place + 1].count(name)})" if longer.count(name) > 1 else name
        for place, name in enumerate(longer)
    ]


def _exhibit(each: Shown, name: str) -> Exhibit:
    if isinstance(each, Exhibit):
        return replace(each, name=name)
    if not isinstance(each, Run):
        levels = {
            (r.site, r.variant, r.measure): each.isotropic[r.measure, r.n, r.d]
            for r in each
            if (r.measure, r.n, r.d) in each.isotropic
        }
        remarks = [f"skipped: {text}" for text in each.left_out]
        return Exhibit(name, list(each), levels=levels, remarks=remarks)
    curves, effective, remarks = _curves(each, name)
    drawn = _draw(each)
    readings = each.readings if drawn.readings is None else drawn.readings
    skipped = (f"skipped: {text}" for text in each.left_out)
    return Exhibit(
        name=name,
        readings=readings,
        curves=[*curves, *drawn.curves],
        facts=facts_of(each),
        levels=_levels(readings, each.settings, effective),
        noun=drawn.noun,
        remarks=[*remarks, *drawn.remarks, *each.origin.remarks, *skipped],
        findings=drawn.findings,
    )


def _draw(run: Run) -> Drawn:
    """Return what the experiment that made a run adds to its page, if anything."""
    draws = [each.exhibit for each in known_experiments() if each.name == run.origin.kind]
    if not draws or draws[0] is None:
        return Drawn(noun=_noun(run))
    try:
        return draws[0](run)
    except StoreError as error:
        return Drawn(remarks=[error.problem], noun=_noun(run))


def _curves(run: Run, name: str) -> tuple[list[Curve], Effective, list[str]]:
    """Return what is drawn from the summaries; a run whose state is lost still has readings."""
    found: list[Curve] = []
    effective: Effective = {}
    chosen = _affordable(run.readings)
    remarks: list[str] = []
    narrow = all(each.d <= WIDE for each in run.readings)
    try:
        with one_blas_thread():
            draw = SiteCurves(run, name)
            sites = [site for site in run.sites if site in chosen]
            drawn = map_in_fork(draw, sites) if narrow else map(draw, sites)
            for curves, rows in drawn:
                found += curves
                effective |= rows
    except StoreError as error:
        why = error.problem.replace(str(run.path), run.path.name)  # pages go to other people
        remarks.append(
            f"only readings are shown, without spectra, dimensions and causes: {why}"
        )
    known = {each.site for each in run.readings}
    if len(chosen) < len(known):
        remarks.append(f"spectra of {len(chosen)} of {len(known)} sites, to save hours of work")
    return found, effective, remarks


class SiteCurves:
    """Draws the curves of a site, and says how many rows each variant of it counts as."""

    def __init__(self, run: Run, name: str) -> None:
        self.run, self.name = run, name

    def __call__(self, site: str) -> tuple[list[Curve], dict[tuple[str, str], float]]:
        """Return the curves of a site, and effective rows by site and variant."""
        counts = self.counts if is_matrix(site) else None
        survey = self.run.survey_of(site)
        found, rows = curves_of(survey, site, self.name)
        if is_matrix(site):
            seen = matrix_cells(survey, site, counts, self.run.origin.seed)
            found += [seen] if seen is not None else []
        return found, {(site, variant): n for variant, n in rows.items()}

    @cached_property
    def counts(self) -> TokenCounts | None:
        """How often tokens were seen, by the first site that says so."""
        for survey in self.run.by_site():
            for here in survey.held.values():
                if Vocabulary in here and here[Vocabulary].count:
                    return TokenCounts(accumulator_of(here, Vocabulary).finalize())
        return None


def _affordable(readings: Iterable[Reading]) -> set[str]:
    """Return the sites to draw spectra of: all, or evenly chosen ones of a wide, deep model."""
    widths = {each.site: each.d for each in readings}
    sites = list(widths)
    cost = sum(3.0 * width**3 for width in widths.values())
    if cost <= COSTLY or len(sites) <= 2:
        return set(sites)
    count = max(2, int(len(sites) * COSTLY / cost))
    return {sites[round(i * (len(sites) - 1) / (count - 1))] for i in range(count)}


def _levels(
    readings: Iterable[Reading], settings: Settings, effective: Effective
) -> dict[tuple[str, str, str], float]:
    """Return what an isotropic cloud of as many effective rows would read."""
    options = options_of(settings)
    known: dict[tuple[str, str, str], float] = {}
    for each in readings:
        of = MEASURES[each.measure].isotropic if each.measure in MEASURES else None
        rows = effective.get((each.site, each.variant))
        if callable(of) and rows is None and options.get("documents"):
            continue  # a value for independent rows would mislead
        n = each.n if rows is None else max(2, min(each.n, round(rows)))
        value = level(of, n, each.d, options)
        if value is not None:
            known[each.site, each.variant, each.measure] = value
    return known


def _noun(run: Run) -> str:
    if run.origin.kind != "survey":
        return "vectors"
    source = next(iter(run.origin.sources), None)
    return NOUNS.get((source and source.kind) or "", "rows")


def _command(words: Sequence[str]) -> str:
    if not words:
        return ""
    name = Path(words[0]).name.replace("__main__.py", "isoscope")
    return " ".join([name, *map(_without_folder, words[1:])])[:300]


def _without_folder(word: str) -> str:
    """Return a word of a command without the folders of an absolute path: pages go to others.

    >>> _without_folder("/home/ann/secret/vectors.npy"), _without_folder("--output=~/runs/a")
    ('vectors.npy', '--output=a')
    """
    flag, equals, value = word.rpartition("=") if word.startswith("-") else ("", "", word)
    if not value.startswith(("/", "~")) and not Path(value).is_absolute():
        return word
    return f"{flag}{equals}{Path(value).name}"


def facts_of(run: Run) -> dict[str, str]:
    """Return where a run comes from, in the order a reader asks."""
    origin, manifest = run.origin, run.manifest
    model, sources = origin.model or Identity(), origin.sources
    documents = sum(source.documents or 0 for source in sources)
    rows = sum(source.rows for source in sources)
    facts = {
        "Model": model.model,
        "Kind": model.architecture,
        "Parameters": f"{model.parameters:,}" if model.parameters else None,
        "Weights": "random" if model.untrained else model.sha[:12],
        "Revision": model.revision,
        "Corpus" if origin.model else "Source": ", ".join(s.name for s in sources[:3])
        + (f" and {len(sources) - 3} more" if len(sources) > 3 else ""),
        "Documents": f"{documents:,}" if documents else None,
        "Examples" if origin.kind == "sweep" else "Rows": f"{rows:,}",
        "Precision": ", ".join(dict.fromkeys(s.dtype for s in sources)),
        "Seed": str(origin.seed),
        "Measured": manifest.created[:16].replace("T", " "),
        "Versions": ", ".join(f"{k} {v}" for k, v in manifest.versions.items()),
        "Command": _command(manifest.command),
    }
    return {name: str(text) for name, text in facts.items() if text}
