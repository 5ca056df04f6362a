"""The picture of an embedding matrix."""

import altair as alt

from isoscope.display.page.section import Exhibit
from isoscope.lab.matrices.section import show
from isoscope.types import MatrixCells


def test_rows_are_cells_with_their_band(demo):
    (chart,) = show([demo]).charts
    alt.Chart.from_dict(chart.spec, validate=True)
    (curve,) = demo.curves_of(MatrixCells)
    rows = chart.rows()
    arrays = (curve.band, curve.x, curve.y, curve.rows)
    cells = zip(*(array.tolist() for array in arrays), strict=True)
    # What is not known lies below, frequent tokens are drawn on top.
    expected = sorted(cells, key=lambda cell: (cell[0] + 1) % 3)
    bands = curve.bands
    assert [(bands.index(r["band"]), r["x"], r["y"], r["rows"]) for r in rows] == expected
    shapes = chart.spec["encoding"]["shape"]["scale"]["range"]
    assert len(set(shapes)) == 3


def test_it_is_reported_how_many_rows_are_shown(demo):
    shown = int(demo.curves_of(MatrixCells)[0].rows.sum())
    assert show([demo]).lead[1] == f"Rows shown: embed.weight {shown} of 30,522."


def test_the_matrix_of_a_real_survey_has_all_its_rows(surveyed):
    panel = show([surveyed])
    rows = panel.charts[0].rows()
    n = surveyed.reading("isoscore", "embed.weight").n
    assert sum(r["rows"] for r in rows) == n
    assert panel.lead[1] == f"Rows shown: embed.weight {n} of {n}."


def test_without_a_matrix_there_is_no_section():
    assert show([Exhibit("a", [])]) is None
