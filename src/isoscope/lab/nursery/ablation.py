"""What an ablation found: cells, effects with intervals, and how these look."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import atanh
from statistics import fmean

import msgspec

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Record,
    RecordLayout,
    Results,
    Table,
    format_value,
    non_empty,
    numbers,
    plain,
    short,
    texts,
)
from isoscope.errors import UndefinedError
from isoscope.lab.nursery.effects import (
    Cell,
    Contrast,
    Factor,
    Outcome,
    analyse,
    family_wise_error,
)
from isoscope.lab.nursery.ingredients import cells_of, label_of
from isoscope.lab.nursery.results import HELD_OUT, SITE
from isoscope.store import Run
from isoscope.types import Reading

COSINE, ISOSCORE, EXCESS = "mean-cosine", "isoscore", "excess-loss"
OUTPUT = "norm.out"
TRAINED = 0.5  # nats below the unigram entropy from which on a cell counts as trained
SURE = 0.05
ALMOST = 1e-9  # how near to 1 a cosine may be for Fisher's z
SCALES = {
    COSINE: "Fisher's z",
    ISOSCORE: "IsoScore",
    EXCESS: "nats above the known entropy",
}
PURE = (
    "errors are those of seeds within cells, each cell with its own variance; intervals are of "
    "one effect each, p is corrected for all {count} effects, measures and sites (Holm)"
)
UNTRAINED = "untrained, less than 0.5 nat below the unigram entropy: {cells}"
DIVERGED = "diverged, or not to be measured, and excluded: {cells}"
ONE_SEED = "one seed: no intervals and no p"
PERMUTED = (
    "with labels permuted {count} times, {share:.1%} had an effect with a corrected p below "
    "0.05"
)
NO_SINKS = "no cell has sinks: IsoScore without them is the same, and is not listed again"


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One cell trained from one seed."""

    levels: tuple[str, ...]
    seed: int
    readings: list[Reading] = []
    parameters: int = 0
    inner_parameters: int = 0  # outside of the token matrices
    unigram_entropy: float = 0.0
    floor: float = 0.0  # the least loss there is
    diverged: str = ""
    seconds: float = 0.0

    def value(self, measure: str, site: str, variant: str = "all") -> float | None:
        """Return a reading after the last step; without sinks that of all where it has none."""
        found = self.curve(measure, site, variant) or self.curve(measure, site, "all")
        return found[-1][1] if found else None

    def curve(self, measure: str, site: str, variant: str) -> list[tuple[int, float]]:
        """Return a measure over steps."""
        key = (measure, site, variant)
        return sorted(
            (each.step or 0, each.value)
            for each in self.readings
            if (each.measure, each.site, each.variant) == key
        )

    @property
    def held_out_loss(self) -> float | None:
        """The held-out loss after the last step."""
        return self.value(HELD_OUT, SITE)

    def outcome(self, outcome: Outcome) -> float | None:
        """Return the number that effects are computed on."""
        measure, site, variant = outcome
        if measure == EXCESS:
            loss = self.held_out_loss
            return None if loss is None else loss - self.floor
        value = self.value(measure, site, variant)
        if value is None or measure != COSINE:
            return value
        return atanh(min(max(value, -1 + ALMOST), 1 - ALMOST))


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    """All cells of an experiment, and what it varied."""

    factors: tuple[tuple[str, tuple[str, ...]], ...]  # names and levels
    middle: str  # the site of the middle layer
    records: list[CellRecord]
    permutations: int = 0
    seed: int = 0

    @property
    def varied(self) -> list[Factor]:
        """The factors."""
        return [Factor(name, levels) for name, levels in self.factors]

    def lost(self, record: CellRecord) -> str:
        """Return why a record does not count; nothing where it does."""
        missing = [o for o in self._usual() if record.outcome(o) is None]
        if record.diverged or not missing:
            return record.diverged
        return f"{missing[0][0]} at {missing[0][1]} cannot be measured"

    def cells(self) -> dict[Cell, list[CellRecord]]:
        """Return the records of every cell that has any that count."""
        found: dict[Cell, list[CellRecord]] = {}
        for cell in cells_of(self.varied):
            here = [e for e in self.records if e.levels == cell and not self.lost(e)]
            if here:
                found[cell] = sorted(here, key=lambda each: each.seed)
        return found

    def _usual(self) -> list[Outcome]:
        sites = (OUTPUT, self.middle)
        found = [(m, site, "all") for m in (COSINE, ISOSCORE) for site in sites]
        return [*found, (EXCESS, SITE, "all")]

    def outcomes(self) -> list[Outcome]:
        """Return what effects are looked for in; without sinks only where there are any."""
        *whole, loss = self._usual()
        without = [(ISOSCORE, site, "no-sink") for site in (OUTPUT, self.middle)]
        return [*whole, *(each for each in without if self._differs(each)), loss]

    def _differs(self, outcome: Outcome) -> bool:
        measure, site, variant = outcome
        return any(
            each.value(measure, site, variant) != each.value(measure, site)
            for each in self.records
            if not self.lost(each)
        )

    def table(self) -> dict[Outcome, dict[Cell, list[float]]]:
        """Return the values of all seeds by outcome and cell."""
        cells = self.cells()
        return {
            outcome: {
                cell: [value for e in found if (value := e.outcome(outcome)) is not None]
                for cell, found in cells.items()
            }
            for outcome in self.outcomes()
        }

    def untrained(self) -> list[Cell]:
        """Return the cells that have hardly learnt more than frequencies."""
        return [cell for cell, found in self.cells().items() if not is_trained(found)]


def is_trained(records: Sequence[CellRecord]) -> bool:
    """Whether the mean held-out loss of a cell is far enough below the unigram entropy."""
    below = [each.unigram_entropy - (each.held_out_loss or 0.0) for each in records]
    return fmean(below) >= TRAINED


def ablation_of(run: Run) -> Ablation:
    """Return an ablation as its run folder holds it."""
    found = msgspec.convert(run.settings.rest["ablation"], Ablation)
    by_group: dict[str, list[Reading]] = {}
    for each in run.readings:
        by_group.setdefault(each.group, []).append(each)
    records = [
        msgspec.structs.replace(
            each,
            readings=by_group.get(
                f"{label_of(found.varied, each.levels)},seed={each.seed}", []
            ),
        )
        for each in found.records
    ]
    return msgspec.structs.replace(found, records=records, permutations=0)


@dataclass(frozen=True)
class EffectLine(Record):
    """What one factor, or a pair of them, does to one measure at one site."""

    factor: str  # a pair has a colon between its names
    change: str  # from which level to which
    measure: str
    scale: str
    site: str
    variant: str
    value: float
    low: float | None
    high: float | None
    p: float | None
    p_corrected: float | None
    freedom: int | None
    marks: list[str]  # why it is to be doubted


def effects_of(found: Ablation) -> Results[EffectLine]:
    """Return one line per effect, outcome by outcome."""
    factors, table = found.varied, found.table()
    cells = found.cells()
    if len(cells) < 2:
        raise UndefinedError(
            f"an ablation needs at least 2 cells that did not diverge, got {len(cells)}",
            hint="lower --learning-rate, in another folder; what was found is kept",
            slug="nursery-diverged",
        )
    untrained = set(found.untrained())
    lines = [
        EffectLine(
            factor=contrast.name,
            change=_change(factors, contrast.name),
            measure=outcome[0],
            scale=SCALES[outcome[0]],
            site=outcome[1],
            variant=outcome[2],
            value=each.value,
            low=each.low,
            high=each.high,
            p=each.p,
            p_corrected=each.p_holm,
            freedom=each.freedom,
            marks=_marks(contrast, untrained),
        )
        for outcome, contrast, each in analyse(factors, table)
    ]
    return Results(
        lines,
        replace(EFFECTS, tables=partial(effect_tables, cell_lines(found))),
        remarks=_remarks(found, lines),
        shared={"seeds": len({each.seed for each in found.records})},
    )


def _change(factors: Sequence[Factor], name: str) -> str:
    by_name = {factor.name: factor for factor in factors}
    chosen = [by_name[part].levels for part in name.split(":")]
    words = [f"{levels[0]} to {levels[-1]}" for levels in chosen]
    return " x ".join(
        f"{text}, per doubling" if levels[0].isdigit() else text
        for text, levels in zip(words, chosen, strict=True)
    )


def _marks(contrast: Contrast, untrained: set[Cell]) -> list[str]:
    lost = len(untrained & set(contrast.weights))
    found = [f"{lost} of {len(contrast.weights)} cells untrained"] if lost else []
    return found + ([] if contrast.complete else ["some combinations diverged"])


def _remarks(found: Ablation, lines: Sequence[EffectLine]) -> list[str]:
    factors = found.varied
    tested = sum(each.p is not None for each in lines)
    untrained = [label_of(factors, cell) for cell in found.untrained()]
    diverged = [
        f"{label_of(factors, each.levels)} with seed {each.seed} ({why})"
        for each in found.records
        if (why := found.lost(each))
    ]
    remarks = [PURE.format(count=tested) if tested else ONE_SEED]
    if untrained:
        remarks.append(UNTRAINED.format(cells="; ".join(untrained)))
    if diverged:
        remarks.append(DIVERGED.format(cells="; ".join(diverged)))
    if not any(variant == "no-sink" for _, _, variant in found.outcomes()):
        remarks.append(NO_SINKS)
    if tested and found.permutations:
        share = family_wise_error(factors, found.table(), found.permutations, found.seed)
        remarks.append(PERMUTED.format(count=found.permutations, share=share))
    return remarks


@dataclass(frozen=True)
class CellLine(Record):
    """The means of one cell over its seeds."""

    cell: str
    seeds: int
    trained: bool
    parameters: int
    inner_parameters: int  # outside of the token matrices
    excess: float  # held-out loss above the known entropy
    below_unigram: float
    output_cosine: float | None
    middle_cosine: float | None
    output_isoscore: float | None
    middle_isoscore: float | None


COLUMNS = {
    "parameters": "parameters",
    "inner_parameters": "outside embeddings",
    "excess": "loss above entropy",
    "below_unigram": "below unigram",
    "output_cosine": "cosine out",
    "middle_cosine": "cosine mid",
    "output_isoscore": "IsoScore out",
    "middle_isoscore": "IsoScore mid",
}


def cell_lines(found: Ablation) -> tuple[CellLine, ...]:
    """Return one line per cell that did not diverge with every seed."""
    return tuple(_cell_line(found, *each) for each in found.cells().items())


def _cell_line(found: Ablation, cell: Cell, records: Sequence[CellRecord]) -> CellLine:
    def mean(measure: str, site: str) -> float | None:
        values = [v for e in records if (v := e.value(measure, site)) is not None]
        return fmean(values) if values else None

    losses = [each.held_out_loss or 0.0 for each in records]
    return CellLine(
        cell=label_of(found.varied, cell),
        seeds=len(records),
        trained=is_trained(records),
        parameters=records[0].parameters,
        inner_parameters=records[0].inner_parameters,
        excess=fmean(loss - e.floor for loss, e in zip(losses, records, strict=True)),
        below_unigram=fmean(
            e.unigram_entropy - loss for loss, e in zip(losses, records, strict=True)
        ),
        output_cosine=mean(COSINE, OUTPUT),
        middle_cosine=mean(COSINE, found.middle),
        output_isoscore=mean(ISOSCORE, OUTPUT),
        middle_isoscore=mean(ISOSCORE, found.middle),
    )


# --- tables -------------------------------------------------------------------------------
def effect_tables(cells: Sequence[CellLine], found: Results[EffectLine]) -> tuple[Table, ...]:
    """Return main effects and the interactions that are sure, then the cells."""
    lines = [
        each
        for each in found
        if ":" not in each.factor or (each.p_corrected is not None and each.p_corrected < SURE)
    ]
    more = len(found) - len(lines)
    remarks = list(found.remarks)
    if more:
        remarks.append(f"{more} interactions that chance may explain: --json")
    names = ", ".join(dict.fromkeys(e.factor for e in found if ":" not in e.factor))
    caption = plain(f"effects of {names}, {found.shared['seeds']} seeds per cell")
    shown = [format_value(each.value, each.low, each.high) for each in lines]
    columns = (
        Column("factor", tuple(plain(e.factor) for e in lines), words=True, role="name"),
        Column("change", tuple(plain(e.change) for e in lines), words=True, fold=12),
        Column("measure", tuple(plain(e.measure) for e in lines), words=True),
        Column("site", tuple(plain(e.site) for e in lines), words=True),
        Column("rows", tuple(_rows(e.variant) for e in lines), words=True),
        Column("effect", tuple(value for value, _ in shown)),
        Column("95 % interval", tuple(interval for _, interval in shown)),
        Column("p (Holm)", tuple(_chance(e.p_corrected) for e in lines)),
        Column("", tuple("*" if e.marks else "" for e in lines)),
    )
    marks = dict.fromkeys(mark for each in lines for mark in each.marks)
    notes = (*remarks, *(f"* {mark}" for mark in marks))
    return (
        Table(caption, non_empty(columns), tuple(map(plain, notes))),
        *([_cell_table(cells)] if cells else []),
    )


def _rows(variant: str) -> str:
    return "" if variant == "all" else variant


def _chance(p: float | None) -> str:
    return "" if p is None else ("<0.001" if p < 0.001 else f"{p:.3f}")


def _cell_table(cells: Sequence[CellLine]) -> Table:
    names = tuple(plain(each.cell) for each in cells)
    columns = [Column("cell", names, words=True, role="name", fold=16)]
    columns += [
        Column(title, tuple(_cell(getattr(each, key)) for each in cells))
        for key, title in COLUMNS.items()
    ]
    states = tuple("" if each.trained else "untrained" for each in cells)
    columns.append(Column("", states, words=True))
    return Table("cells, means over seeds", non_empty(columns))


def _cell(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return short(value) if isinstance(value, float) else ""


EFFECTS = RecordLayout(
    name="effects",
    tables=partial(effect_tables, ()),
    to_dict=EffectLine.to_dict,
    fields=(
        Field("seeds", "integer"),
        *texts("factor", "change", "measure", "scale", "site", "variant"),
        Field("value", "number"),
        *numbers("low", "high", "p", "p_corrected"),
        Field("freedom", "integer", optional=True),
        Field("marks", "json"),
    ),
)
