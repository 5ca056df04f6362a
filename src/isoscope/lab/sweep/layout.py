"""How the lines of a sweep look: the task weight by weight, and the geometry under it."""

from isoscope.display import frames
from isoscope.display.escape import plain
from isoscope.display.frames import Field, numbers, texts
from isoscope.display.number import format_value, short
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Column, Table
from isoscope.lab.sweep.summary import Line, over_layers

SHOWN = ("isoscore-star", "isoscore-debiased", "mean-cosine", "twonn")
MEANS = "geometry of held-out texts, mean over layers and seeds; by layer with --json"


def _tables(lines: Results[Line]) -> tuple[Table, ...]:
    names = ("model", "task", "penalty", "steps", "seeds")
    caption = plain(", ".join(f"{name} {lines.shared[name]}" for name in names))
    if not lines:
        return (Table(caption, ()),)
    columns = (
        Column("weight", tuple(f"{line.weight:g}" for line in lines)),
        Column(str(lines.shared["metric"]), tuple(map(_spread, lines))),
        Column("difference", tuple(_difference(line)[0] for line in lines)),
        Column("95 % interval", tuple(_difference(line)[1] for line in lines)),
        Column("p (Holm)", tuple(map(_chance, lines))),
        Column("loss", tuple(f"{line.loss:.3f}" for line in lines)),
    )
    kept = tuple(column for column in columns if any(column.cells))
    return (
        Table(caption, kept, tuple(map(plain, lines.remarks))),
        Table(MEANS, _geometry(lines)),
    )


def _geometry(lines: Results[Line]) -> tuple[Column, ...]:
    start = lines[0].before
    stages = [start, *(line.after for line in lines)]
    return (
        Column("weight", ("before", *(f"{line.weight:g}" for line in lines))),
        *(
            Column(name, tuple(short(over_layers(stage, name)) for stage in stages))
            for name in SHOWN
            if name in start
        ),
    )


def _spread(line: Line) -> str:
    return f"{line.mean:.4f}" + (f" ±{line.sd:.4f}" if line.sd is not None else "")


def _difference(line: Line) -> tuple[str, str]:
    apart = line.difference
    return ("", "") if apart is None else format_value(apart.value, apart.low, apart.high)


def _chance(line: Line) -> str:
    chance = line.difference.p_holm if line.difference else None
    return "" if chance is None else ("<0.001" if chance < 0.001 else f"{chance:.3f}")


def _record(line: Line) -> frames.Line:
    return line.to_dict()


SWEEP_LINES = RecordLayout(
    name="weights",
    tables=_tables,
    to_dict=_record,
    fields=(
        *texts("model", "task", "penalty", "metric"),
        Field("baseline", "number"),
        Field("learnt", "flag", optional=True),
        Field("diverged", "json"),
        Field("steps", "integer"),
        Field("seeds", "integers"),
        Field("weight", "number"),
        Field("values", "numbers"),
        *numbers("mean", "sd"),
        Field("difference", "json"),
        Field("loss", "number"),
        Field("before", "json"),
        Field("after", "json"),
    ),
)
