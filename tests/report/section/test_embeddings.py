"""The picture of an embedding matrix."""

import altair as alt

from isoscope.report.page.exhibit import Exhibit
from isoscope.report.section.embeddings import show


def test_rows_are_cells_with_their_band(demo):
    (chart,) = show([demo]).charts
    alt.Chart.from_dict(chart.spec, validate=True)
    (curve,) = demo.drawn("matrix")
    rows = chart.rows()
    assert [r["x"] for r in rows] == curve.arrays["x"].tolist()
    assert [r["rows"] for r in rows] == curve.arrays["rows"].tolist()
    assert {r["band"] for r in rows} == {"not seen", "1 to 9 times"}
    shapes = chart.spec["encoding"]["shape"]["scale"]["range"]
    assert len(set(shapes)) == 2


def test_without_a_matrix_there_is_no_section():
    assert show([Exhibit("a", [])]) is None
