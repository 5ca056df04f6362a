"""What is read off summaries: which measures are meant, with which options, and readings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, islice
from typing import Annotated, TypeAlias

from isoscope.accumulate.survey import Survey
from isoscope.blas import one_blas_thread
from isoscope.dataclass import dataclass
from isoscope.display import READINGS, Results
from isoscope.engine.allocator import trim
from isoscope.errors import ConfigError, RowError, TooFewRowsError
from isoscope.measures import MEASURES, level
from isoscope.measures.base import NOT_OF_ROWS, Level
from isoscope.store.origin import Settings
from isoscope.store.state import State
from isoscope.study.option import Part, about
from isoscope.study.reading import Spreads, read_survey
from isoscope.study.threads import THREADS, map_in_threads
from isoscope.types import Reading

WIDE = 1024  # of sites that are not read two at a time
TRIMMED = 4  # sites after which free memory goes back
NAMED = 8  # sites that a remark names
Computed: TypeAlias = Mapping[str, float | bool]  # what measures are computed with, by name


class Reads(Part, frozen=True, kw_only=True):
    """Which measures are computed, and how."""

    measures: Annotated[
        tuple[str, ...] | None,
        about("A measure; repeat it for more than one.", "NAME", flag="-m/--measure"),
    ] = None
    all: Annotated[
        bool, about("Also compute the measures that need a second pass.", local=True)
    ] = False
    as_published: Annotated[
        bool, about("Compute as the papers did, where our definition differs.")
    ] = False
    zeta: Annotated[float, about("Shrinkage of isoscore-star.", "Z", least=0.0, most=1.0)] = 0.2

    def names(self, *, text: bool = False) -> tuple[str, ...]:
        """Return the names of the measures: those chosen, the default set, or all."""
        return measure_names(self.measures, all=self.all, text=text)

    def options(self, *, documents: bool) -> dict[str, float | bool]:
        """Return what measures are computed with."""
        return {"zeta": self.zeta, "as_published": self.as_published, "documents": documents}


def measure_names(
    measures: Sequence[str] | None, *, all: bool = False, text: bool = False
) -> tuple[str, ...]:
    """Return the names of measures: those chosen, the default set, or all.

    Measures of tokens and texts are offered where there is `text`.
    """
    if measures is not None:
        chosen = [measures] if isinstance(measures, str) else measures
        if not chosen:
            raise nothing({})
        _refuse_others(chosen)
        return tuple(dict.fromkeys(MEASURES[name].name for name in chosen))
    return tuple(
        m.name
        for m in MEASURES.values()
        if m.offered not in NOT_OF_ROWS and (text if m.offered == "text" else all or m.default)
    )


def head_measures() -> tuple[str, ...]:
    """Return the names of the measures of attention heads."""
    return tuple(each.name for each in MEASURES.values() if each.offered == "heads")


def gradient_measures() -> tuple[str, ...]:
    """Return the names of the measures of gradients."""
    return tuple(each.name for each in MEASURES.values() if each.offered == "gradients")


def _refuse_others(names: Sequence[str]) -> None:
    """Raise where a measure of attention heads or of gradients is to be computed of rows."""
    others = {
        "heads": ("the heads of attention", "attention"),
        "gradients": ("gradients", "tangent"),
    }
    for name in names:
        if MEASURES[name].offered in NOT_OF_ROWS:
            words, command = others[MEASURES[name].offered]
            raise ConfigError(
                f"cannot compute {name} of rows: it is of {words}",
                hint=f"isoscope {command} MODEL computes it, and isoscope read prints it",
                slug="measure-of-heads",
            )


@dataclass(frozen=True)
class MeasureFacts:
    """What a script may want to know of a measure."""

    name: str
    title: str
    default: bool
    second_pass: bool
    isotropic: float | str | None  # with many rows: a number, or how it goes with the width d
    collapsed: float | str | None
    unmoved_by: list[str]
    as_published: bool  # whether the paper or its code computes it otherwise
    formula: str
    misleads: str
    cite: str


def describe_measures() -> list[MeasureFacts]:
    """Return what is known of each measure."""
    return [
        MeasureFacts(
            name=each.name,
            title=each.title,
            default=bool(each.default),
            second_pass=bool(each.second_pass),
            isotropic=_limit(each.isotropic),
            collapsed=_limit(each.collapsed),
            unmoved_by=sorted(each.unmoved_by),
            as_published=each.published is not None,
            formula=each.note.formula,
            misleads=each.note.misleads,
            cite=each.cite,
        )
        for each in MEASURES.values()
    ]


def _limit(of: Level) -> float | str | None:
    """Return a reference value with many rows: a number, or how it goes with the width d."""
    many, widths = 10**15, (512, 768)
    found = [number for width in widths if (number := level(of, many, width)) is not None]
    if not found:
        return None
    for words, scale in (("d", widths), ("1/d", [1 / width for width in widths])):
        if all(abs(a / b - 1) < 1e-3 for a, b in zip(found, scale, strict=True)):
            return words
    return round(found[0], 3) + 0.0 if abs(found[0] - found[1]) < 1e-5 else "varies with d"


def options_of(settings: Settings) -> dict[str, float | bool]:
    """Return the options that measures were computed with."""
    options = {
        "zeta": settings.zeta,
        "as_published": settings.as_published,
        "documents": settings.documents,
        "controls": settings.controls,
    }
    return {name: value for name, value in options.items() if value is not None}


def companions(name: str) -> set[str]:
    """Return the readings that come along with a measure."""
    return {f"{name}-{suffix}" for suffix in MEASURES[name].beside}


def read_state(
    state: State,
    names: Sequence[str],
    run: str,
    options: Computed,
    order: Sequence[str] = (),
    spreads: Spreads | None = None,
) -> Results[Reading]:
    """Return the readings of a state, a site at a time; memory holds one of them.

    What intervals are made of goes into `spreads`, where they are given.
    """
    sites = state.sites_in(order)
    own = (state.survey_of(site) for site in sites if site not in state.same)
    found, left_out = read_sites(own, names, run, options, spreads)
    if spreads is not None:
        spreads |= {
            (site, variant, name): each
            for site, source in state.same.items()
            for (where, variant, name), each in list(spreads.items())
            if where == source
        }
    if state.same:
        found = [
            replace(reading, site=site)
            for site in sites
            for reading in found
            if reading.site == state.same.get(site, site)
        ]
    if not found and not state.trouble:
        raise nothing(left_out)
    readings = Results(
        found,
        READINGS,
        left_out=[f"{name}: {why}" for name, why in left_out.items()],
        isotropic=isotropic_levels(found, options),
        trouble=state.trouble,
    )
    if not found:
        refuse_not_finite(readings)
    return readings


def read_sites(
    surveys: Iterable[Survey],
    names: Sequence[str],
    run: str,
    options: Computed,
    spreads: Spreads | None = None,
) -> tuple[list[Reading], dict[str, str]]:
    """Return the readings of surveys of a site each, and why some could not be computed.

    A measure that is missing at some sites only is named with them: "twonn at pooled".
    """
    found: list[Reading] = []
    left_out: dict[str, str] = {}
    where: dict[tuple[str, str], list[str]] = {}  # the sites, by measure and reason
    for sites, (readings, missing) in _read_each(surveys, names, run, options, spreads):
        found += readings
        left_out.update(missing)
        for name, why in missing.items():
            where.setdefault((name, why), []).extend(sites)
    # Matrices have no texts: a measure of texts that was computed elsewhere is not missing.
    there = {each.measure for each in found if each.measure in MEASURES}
    of_texts = {name for name in there if MEASURES[name].offered == "text"}
    everywhere = {name: why for name, why in left_out.items() if name not in there}
    somewhere = {
        f"{name} at {_name_sites(sites)}": why
        for (name, why), sites in where.items()
        if name in there - of_texts
    }
    return found, everywhere | somewhere


def _name_sites(sites: Sequence[str]) -> str:
    """Return the names of sites, or the first few of many."""
    more = f" and {len(sites) - NAMED} more" if len(sites) > NAMED else ""
    return ", ".join(sites[:NAMED]) + more


def concerns(text: str, sites: Sequence[str]) -> bool:
    """Whether a remark on a measure that is missing is about one of these sites.

    >>> concerns("twonn at pooled: too few", ["resid.0"]), concerns("twonn: few", ["resid.0"])
    (False, True)
    """
    name = text.partition(":")[0]
    _, at, listed = name.partition(" at ")
    return not at or listed.endswith(" more") or bool({*listed.split(", ")} & {*sites})


def _read_each(
    surveys: Iterable[Survey],
    names: Sequence[str],
    run: str,
    options: Computed,
    spreads: Spreads | None = None,
) -> Iterator[tuple[list[str], tuple[list[Reading], dict[str, str]]]]:
    """Yield sites and readings of each survey: two at a time, or one of them on two threads.

    Matrices of wide sites are large, so that only one of these is in memory.
    """
    rest = iter(surveys)
    waiting = list(islice(rest, 1))
    narrow = all(_width(survey) <= WIDE for survey in waiting)  # the others are mostly alike
    if narrow:
        waiting += islice(rest, 1)
    by_site = len(waiting) > 1
    number = count(1)

    def take() -> Iterator[Survey]:
        while waiting:
            yield waiting.pop(0)
        yield from rest

    def read(survey: Survey) -> tuple[list[str], tuple[list[Reading], dict[str, str]]]:
        threads = 1 if by_site else THREADS
        found = read_survey(survey, names, run=run, threads=threads, spreads=spreads, **options)
        if next(number) % TRIMMED == 0:
            trim()  # matrices of many sizes leave holes
        return list(dict.fromkeys(site for site, _ in survey.held)), found

    with one_blas_thread():  # here, since it is of the process and not of a thread
        yield from map_in_threads(read, take(), THREADS if by_site else 1)


def _width(survey: Survey) -> int:
    """Return the largest width of the places of a survey."""
    return max(
        (part.width for here in survey.held.values() for part in here.values()), default=0
    )


def refuse_not_finite(readings: Results[Reading]) -> None:
    """Raise where a site produced NaN or infinity; the others have been read."""
    others = len(readings.trouble) - 1
    for site, why in readings.trouble.items():
        more = f" and {others} more sites" if others else ""
        raise RowError(
            f"expected finite numbers at {site}{more}, got NaN or infinity at {why}",
            hint="the other sites were measured; try --dtype=float32, or exclude the site",
            slug="site-not-finite",
        )


def nothing(left_out: dict[str, str]) -> TooFewRowsError:
    """Return the error for a call of which nothing could be computed."""
    return TooFewRowsError(
        next(iter(left_out.values()), "a reading needs at least 1 measure, got 0"),
        hint="none of these measures can be computed from these rows or this run; "
        "measure again with more rows, or with these measures",
        slug="nothing-to-read",
    )


def isotropic_levels(
    readings: Iterable[Reading], options: Computed
) -> dict[tuple[str, int, int], float]:
    """Return what an isotropic cloud of the same size would read, where that is known.

    Of rows in documents only what does not depend on their number: a value for independent
    rows would mislead.
    """
    known: dict[tuple[str, int, int], float] = {}
    for each in readings:
        of = MEASURES[each.measure].isotropic if each.measure in MEASURES else None
        value = level(of, each.n, each.d, options)
        if value is not None and not (options.get("documents") and callable(of)):
            known[each.measure, each.n, each.d] = value
    return known
