"""A section of the page: exhibits in, a panel of text, switches and charts out.

An exhibit is one run as the page sees it, made of plain values from types.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from itertools import compress
from math import isfinite
from typing import Any, TypeAlias, TypeVar

from isoscope.dataclass import dataclass
from isoscope.display.frames import Value
from isoscope.escape import plain
from isoscope.site import output_of
from isoscope.types import DEBIASED_TWINS, VARIANTS, Curve, Reading

Level = Mapping[tuple[str, str, str], float]  # (site, variant, measure) to its isotropic value
Cell: TypeAlias = str | int | float | None
Columns: TypeAlias = dict[str, list[Cell]]  # names to cells; all of the same length
ChartSpec: TypeAlias = dict[str, Value]  # a Vega-Lite specification
Position: TypeAlias = str | tuple[str, ...]  # of a switch: one value, or several
LONGEST = 40  # characters of the name of a run above a chart
ROWS = "rows"  # the name of the data set that switches filter
VARIANT_NAMES = {"all": "all tokens", "no-special": "no special tokens", "no-sink": "no sinks"}

C = TypeVar("C", bound=Curve)
V = TypeVar("V", bound=Curve | Reading)


# --- what a section receives --------------------------------------------------------------
@dataclass(frozen=True)
class Finding:
    """One sentence of a verdict: a number, what it is, and how it was found."""

    figure: str
    text: str
    rule: str


@dataclass(frozen=True)
class Drawn:
    """What an experiment adds to the page of its run folders."""

    curves: Sequence[Curve] = ()
    findings: Sequence[Finding] = ()  # come first in the verdict
    remarks: Sequence[str] = ()
    noun: str = "rows"  # what a row is
    readings: Sequence[Reading] | None = None  # in place of all that the run has


@dataclass(frozen=True)
class Exhibit:
    """The readings of a run, the curves drawn from its summaries, and its provenance."""

    name: str
    readings: Sequence[Reading]
    curves: Sequence[Curve] = ()
    facts: Mapping[str, str] = field(default_factory=dict[str, str])  # provenance
    levels: Level = field(default_factory=dict[tuple[str, str, str], float])
    noun: str = "rows"  # what a row is: tokens, texts, vectors
    remarks: Sequence[str] = ()  # what could not be computed or read, and why
    findings: Sequence[Finding] = ()  # of the experiment that made the run

    def curves_of(self, kind: type[C]) -> list[C]:
        """Return the curves of one kind, in the order of the run."""
        return [curve for curve in self.curves if isinstance(curve, kind)]

    def estimate(self, measure: str, site: str, variant: str = "all") -> Reading | None:
        """Return the reading of a measure's debiased twin, or its own where there is none."""
        debiased = self.reading(DEBIASED_TWINS.get(measure, measure), site, variant)
        return debiased or self.reading(measure, site, variant)

    def reading(self, measure: str, site: str, variant: str = "all") -> Reading | None:
        """Return a reading of all rows of a site, at the last step of a series."""
        place = (measure, site, variant, "")
        found = (r for r in self.readings if (r.measure, r.site, r.variant, r.group) == place)
        return next(reversed(list(found)), None)

    @property
    def sites(self) -> list[str]:
        """The sites that have readings, in the order of the run."""
        return list(dict.fromkeys(each.site for each in self.readings))

    @property
    def finite(self) -> "Exhibit":
        """The same without readings that are NaN or infinite; a remark counts them."""
        kept = [_with_finite_interval(each) for each in self.readings if isfinite(each.value)]
        lost = len(self.readings) - len(kept)
        remark = f"{lost} of {len(self.readings)} readings are NaN or infinite: not shown"
        remarks = (*self.remarks, remark) if lost else self.remarks
        return replace(self, readings=kept, remarks=remarks)

    @property
    def printable(self) -> "Exhibit":
        """The same with escape codes for what a page or a terminal might execute."""
        return replace(
            self,
            name=plain(self.name),
            readings=[_printable(each) for each in self.readings],
            curves=[_printable(curve) for curve in self.curves],
            facts={plain(name): plain(text) for name, text in self.facts.items()},
            levels={
                (plain(site), plain(variant), plain(measure)): level
                for (site, variant, measure), level in self.levels.items()
            },
            remarks=[plain(text) for text in self.remarks],
            findings=[_printable(each) for each in self.findings],
        )


def fill_variants(items: Sequence[V], variants: Sequence[str]) -> list[tuple[str, V]]:
    """Return items with their variants; one of all rows stands in for missing ones."""
    have = {(each.site, each.variant, getattr(each, "step", None)) for each in items}
    found = [(each.variant, each) for each in items]
    for each in items:
        if each.variant == "all":
            step = getattr(each, "step", None)
            found += [(v, each) for v in variants if (each.site, v, step) not in have]
    return found


def _with_finite_interval(each: Reading) -> Reading:
    """Return a reading without its interval where that is not finite."""
    ends = [end for end in (each.low, each.high) if end is not None]
    return each if all(map(isfinite, ends)) else replace(each, low=None, high=None)


def _printable(value: Any) -> Any:
    """Return a value with every text in it printable, however deeply nested.

    What needs no change is returned as it is: there are thousands of readings.
    """
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, tuple):
        return tuple(map(_printable, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    parts = {each.name: getattr(value, each.name) for each in fields(value)}
    changed = {name: _printable(part) for name, part in parts.items()}
    same = all(
        changed[name] == part for name, part in parts.items() if isinstance(part, str | tuple)
    )
    return value if same else replace(value, **changed)


# --- what a section returns ---------------------------------------------------------------
@dataclass(frozen=True)
class Switch:
    """A choice that filters the rows of charts by the column of the same name."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...]  # value, and its label
    chosen: str  # several values have commas between them
    several: bool = False  # any number of choices at once
    slider: bool = False  # choices are in order, and one slides through them

    @property
    def position(self) -> Position:
        """The value that is chosen, or several of them."""
        return tuple(filter(None, self.chosen.split(","))) if self.several else self.chosen


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification over a data set called `rows`, and its rows as columns."""

    name: str
    title: str
    spec: ChartSpec
    columns: Columns
    alt: str  # the text alternative, for screen readers
    wide: bool = False  # takes the whole width of the page
    half: bool = False  # takes half of it; a third where neither is set
    folded: bool = False  # hidden until "Show all" is pressed
    least_height: float = 0.0  # in points, in a figure for a paper
    # Measure and title by position of the switch `form`, where a chart has several estimates.
    forms: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    ignores: tuple[str, ...] = ()  # switches that do not filter it, although it has the column
    same_as: str = ""  # a chart before it that has the same columns: they are stored once
    by: str = ""  # the switch that chooses among `specs`
    specs: Mapping[str, ChartSpec] = field(default_factory=dict[str, ChartSpec])
    heading: str = ""  # above it in a figure for a paper, where that is not the title
    shows: tuple[str, ...] = ()  # switches whose positions a figure for a paper names
    says: str = ""  # below the title, in such a figure

    def in_form(self, form: str) -> "Chart":
        """Return the chart of one estimate, whatever the position of the switch."""
        if form not in self.forms:
            return self
        kept = [each == form for each in self.columns["form"]]
        columns = {
            name: list(compress(cells, kept))
            for name, cells in self.columns.items()
            if name != "form"
        }
        return replace(self, title=self.forms[form][1], columns=columns, forms={})

    def beside(self, column: str, values: Sequence[str]) -> "tuple[Chart, ...]":
        """Return a chart of half the width for each value of a column, side by side."""
        found: list[Chart] = []
        for number, value in enumerate(values):
            kept = [each == value for each in self.columns[column]]
            columns = {name: list(compress(c, kept)) for name, c in self.columns.items()}
            heading = shorten(value)
            found.append(
                replace(
                    self,
                    name=f"{self.name}-{number}",
                    title=f"{value}: {self.title[:1].lower()}{self.title[1:]}",
                    heading=heading,
                    columns=columns,
                    spec={**self.spec, "title": {"text": heading, "limit": {"expr": "width"}}},
                    alt=f"{value}: {self.alt}",
                    wide=False,
                    half=True,
                )
            )
        return tuple(found)

    def rows(self, **chosen: Position) -> list[dict[str, Cell]]:
        """Return the rows that remain with the switches in these positions."""
        rows = [
            dict(zip(self.columns, row, strict=True))
            for row in zip(*self.columns.values(), strict=True)
        ]
        filters = {
            name: {value} if isinstance(value, str) else {*value}
            for name, value in chosen.items()
            if name in self.columns and name not in self.ignores
        }
        return [
            row
            for row in rows
            if all(str(row[name]) in values for name, values in filters.items())
        ]

    def spec_at(self, chosen: Mapping[str, Position]) -> ChartSpec:
        """Return the specification with the switches in these positions."""
        return self.specs.get(str(chosen.get(self.by, "")), self.spec)


@dataclass(frozen=True)
class Panel:
    """What one section shows."""

    lead: tuple[str, ...] = ()  # paragraphs of plain text
    switches: tuple[Switch, ...] = ()
    charts: tuple[Chart, ...] = ()
    body: str = ""  # HTML, all text in it escaped

    def describe(self, chart: Chart, chosen: Mapping[str, Position]) -> str:
        """Return what a chart shows with the switches in these positions, in words."""
        found: list[str] = []
        for switch in self.switches:
            value = chosen.get(switch.name)
            if switch.name in chart.shows and isinstance(value, str):
                label = dict(switch.choices).get(value, value)
                found.append(f"{switch.label.lower()} {label}" if switch.slider else label)
        return ", ".join(found) or chart.says

    @property
    def positions(self) -> dict[str, Position]:
        """The positions of the switches."""
        return {switch.name: switch.position for switch in self.switches}


@dataclass(frozen=True)
class Section:
    """One part of the page; `show` returns None where runs have nothing to show."""

    name: str
    title: str
    show: Callable[[Sequence[Exhibit]], Panel | None]
    first: bool = False  # before what pages show of every run
    # Where a page has something else than a figure for a paper, such as of a single site.
    show_on_page: Callable[[Sequence[Exhibit]], Panel | None] | None = None

    def on_page(self, exhibits: Sequence[Exhibit]) -> Panel | None:
        """Return what a page shows of these runs."""
        return (self.show_on_page or self.show)(exhibits)


def shorten(name: str, longest: int = LONGEST) -> str:
    """Return a name without its middle where it is long: names of runs often differ at the end.

    >>> shorten("bert"), shorten("a-very-long-name-step-1000", 15)
    ('bert', 'a-very-…ep-1000')
    """
    if len(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{name[: longest - 1 - end]}…{name[-end:]}"


def as_columns(names: Iterable[str], rows: Iterable[Mapping[str, Cell]]) -> Columns:
    """Return rows as columns, also where there are no rows."""
    rows = list(rows)
    return {name: [row[name] for row in rows] for name in names}


def run_switch(runs: Sequence[str]) -> list[Switch]:
    """Return a choice of run where there are several."""
    choices = tuple((run, run) for run in runs)
    return [Switch("run", "Run", choices, runs[0])] if len(runs) > 1 else []


def site_switch(sites: Sequence[str]) -> Switch:
    """Return a choice of site that begins with the output of the model."""
    output = output_of(sites) or sites[0]
    return Switch("site", "Site", tuple((site, site) for site in sites), output)


def variant_switch(variants: Iterable[str]) -> list[Switch]:
    """Return a choice of variant where there are several."""
    have = set(variants)
    named = tuple((name, VARIANT_NAMES[name]) for name in VARIANTS if name in have)
    return [Switch("variant", "Rows", named, named[0][0])] if len(named) > 1 else []
