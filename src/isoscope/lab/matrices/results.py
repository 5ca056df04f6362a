"""The verb of matrices: I(W) of the input and output embeddings of a model."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from isoscope.display.escape import plain
from isoscope.display.frames import Field, Line, integers, numbers
from isoscope.display.number import count, format_value
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Column, Table
from isoscope.lab.matrices.spec import MatricesSpec
from isoscope.study.keywords import call, keywords
from isoscope.study.spec import EngineOptions

if TYPE_CHECKING:
    from isoscope.lab.matrices.worker import MatrixIsotropy

ONE_SIDED = "as published: one sign of each eigenvector, whichever the solver gives"


def _tables(found: "Results[MatrixIsotropy]", as_published: bool = False) -> tuple[Table, ...]:
    """One line per matrix and centre."""
    values = [each.as_published if as_published else each.value for each in found]
    logs = ("" if as_published else f"{each.log_value:.3g}" for each in found)
    drawn = (
        "" if each.reference is None else format_value(each.reference, None, None)[0]
        for each in found
    )
    columns = (
        Column("site", tuple(plain(each.site) for each in found), words=True, fold=12),
        Column("about", tuple(_about(each) for each in found), words=True),
        Column("I(W)", tuple(format_value(value, None, None)[0] for value in values)),
        Column("log I(W)", tuple(logs)),
        Column("random rows", tuple(drawn)),
        Column("rows", tuple(count(each.rows) for each in found)),
        Column("d", tuple(count(each.width) for each in found)),
    )
    caption = f"model {plain(str(found.shared['model']))}, I(W): 1 is isotropic, 0 collapsed"
    kept = tuple(column for column in columns if any(column.cells))
    return (Table(caption, kept, found.remarks),)


def _record(each: "MatrixIsotropy") -> Line:
    return each.to_dict()


MATRICES = RecordLayout(
    name="matrices",
    tables=_tables,
    to_dict=_record,
    fields=(
        Field("model"),
        Field("tied", "flag"),
        Field("site"),
        Field("centred", "flag"),
        *integers("rows", "width"),
        *numbers("value", "log_value", "as_published", "reference"),
    ),
)


@keywords(MatricesSpec, EngineOptions)
def matrices(*arguments: Any, **options: Any) -> "Results[MatrixIsotropy]":
    """Measure how isotropic the rows of a model's matrices are: I(W), raw and centred.

    Two-sided unless `as_published`; records have both. `against_random` adds I of random rows
    with the same norms.
    """
    found = call(MatricesSpec, arguments, options, EngineOptions)
    remarks = [found.remark] if found.tied else []
    layout = replace(MATRICES, tables=partial(_tables, as_published=found.as_published))
    return Results(
        found.matrices,
        layout,
        shared={"model": found.model, "tied": found.tied},
        remarks=[*remarks, ONE_SIDED] if found.as_published else remarks,
    )


def _about(each: "MatrixIsotropy") -> str:
    return "its mean" if each.centred else "the origin"
