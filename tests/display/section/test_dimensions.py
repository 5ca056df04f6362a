"""The heat map of dimensions."""

from dataclasses import replace

import altair as alt

from isoscope.display.page.section import Exhibit
from isoscope.display.section.dimensions import largest_scores, show
from isoscope.types import DimensionScores


def test_cells_are_the_scores_of_the_curve(demo):
    panel = show([demo])
    (chart,) = panel.charts
    alt.Chart.from_dict(chart.spec, validate=True)
    rows = chart.rows(variant="all")
    scores = [r["score"] for r in rows if r["site"] == "resid.1"]
    curve = next(c for c in demo.curves_of(DimensionScores) if c.site == "resid.1")
    assert len(scores) == 32
    assert scores[7] == float(f"{curve.score[7]:.3g}")
    assert min(scores) >= 1.0


def test_the_worst_dimension_is_named_with_its_site(demo):
    table = largest_scores([demo])
    row = dict(zip([c.head for c in table.columns], table.rows[0], strict=True))
    assert row["dimension"] == "15"
    assert row["at"].startswith(("norm", "resid"))
    assert row["sites with 5 or more"] == str(len(demo.sites))


def test_where_none_stands_out_that_is_reported(demo):
    curve = next(c for c in demo.curves_of(DimensionScores) if c.site == "embed")
    calm = replace(curve, score=curve.score / 99)
    table = largest_scores([Exhibit("a", [], [calm])])
    assert "no dimension" in table.rows[0][0]


def test_a_colour_means_the_same_in_every_run(exhibits):
    runs = [exhibits.exhibit("one"), exhibits.exhibit("two")]
    most = max(float(c.score.max()) for e in runs for c in e.curves_of(DimensionScores))
    color = show(runs).charts[0].spec["encoding"]["color"]
    assert color["scale"]["domain"] == [1, most]


def test_two_runs_are_side_by_side_and_several_are_chosen_from(exhibits):
    panel = show([exhibits.exhibit(name) for name in ("one", "two")])
    assert "run" not in panel.positions
    assert [{row["run"] for row in each.rows()} for each in panel.charts] == [{"one"}, {"two"}]
    assert all(each.half and not each.wide for each in panel.charts)
    assert [each.spec["title"]["text"] for each in panel.charts] == ["one", "two"]
    panel = show([exhibits.exhibit(name) for name in ("one", "two", "three")])
    assert panel.positions["run"] == "one"
    assert len(panel.charts) == 1
    assert (
        largest_scores([exhibits.exhibit("one"), exhibits.exhibit("two")]).columns[0].head
        == "run"
    )


def test_without_curves_there_is_no_section():
    assert show([Exhibit("a", [])]) is None
