"""The spectrum of one site."""

from dataclasses import replace

import altair as alt
import pytest

from isoscope.display.page.section import Exhibit
from isoscope.display.section.spectrum import _spec, show
from isoscope.display.section.verdict import findings, output_site
from isoscope.types import SpectrumCurve


def test_rows_are_eigenvalues_and_marks_are_readings(demo):
    panel = show([demo])
    (chart,) = panel.charts
    alt.LayerChart.from_dict(chart.spec, validate=True)
    assert panel.positions == {"site": "norm.out", "variant": "all"}
    rows = chart.rows(site="resid.1", variant="no-sink")
    place = ("resid.1", "no-sink")
    curve = next(c for c in demo.curves_of(SpectrumCurve) if (c.site, c.variant) == place)
    assert [r["value"] for r in rows if r["kind"] == "spectrum"] == curve.value.tolist()
    assert [r["value"] for r in rows if r["kind"] == "isotropic"] == curve.isotropic.tolist()
    marks = {r["text"].rpartition(" ")[0]: r["rank"] for r in rows if r["kind"] == "mark"}
    assert marks == {
        "debiased effective rank": demo.reading(
            "effective-rank-debiased", "resid.1", "no-sink"
        ).value,
        "participation": demo.reading("participation", "resid.1", "no-sink").value,
    }


def test_the_spectrum_and_the_verdict_have_the_same_effective_rank(demo):
    quiet = replace(demo, curves=demo.curves_of(SpectrumCurve))
    plain = replace(
        quiet, readings=[r for r in demo.readings if r.measure != "effective-rank-debiased"]
    )
    for exhibit, label in ((quiet, "debiased effective rank"), (plain, "effective rank")):
        panel = show([exhibit])
        rows = panel.charts[0].rows(**panel.positions)
        (mark,) = (r for r in rows if "effective rank" in r["text"])
        finding = findings(exhibit)[2]
        assert mark["text"].startswith(f"{label} ") and f"is the {label} of" in finding.text
        assert finding.figure == f"{mark['rank']:.0f}"


def test_so_they_have_where_a_real_survey_has_both_estimates(surveyed):
    site = output_site(surveyed)
    rows = show([surveyed]).charts[0].rows(site=site, variant="all")
    (mark,) = (r for r in rows if "effective rank" in r["text"])
    (finding,) = (each for each in findings(surveyed) if "effective rank" in each.text)
    assert surveyed.reading("effective-rank", site).value < mark["rank"]
    assert finding.figure == f"{mark['rank']:.0f}"


def test_marks_of_several_runs_say_whose_they_are(exhibits):
    panel = show([exhibits.exhibit("one"), exhibits.exhibit("two")])
    texts = {r["text"] for r in panel.charts[0].rows(**panel.positions) if r["kind"] == "mark"}
    assert {text.rpartition(", ")[2] for text in texts} == {"one", "two"}


def test_eigenvalues_of_a_real_survey_stand_beside_an_isotropic_cloud(surveyed):
    panel = show([surveyed])
    rows = panel.charts[0].rows(**panel.positions)
    kinds = {k: [r for r in rows if r["kind"] == k] for k in ("spectrum", "isotropic")}
    values = [r["value"] for r in kinds["spectrum"]]
    assert values == sorted(values, reverse=True)
    assert sum(values) == pytest.approx(24, rel=1e-9)  # over their average, all 24 of them
    ranks = [r["rank"] for r in kinds["isotropic"]]
    assert ranks[0] == 1 and ranks == sorted(ranks)
    assert kinds["isotropic"][0]["value"] < values[0]


def test_the_page_says_which_law_the_line_is(demo):
    assert "Marchenko" in show([demo]).lead[0]


def test_without_spectra_there_is_no_section():
    assert show([Exhibit("a", [])]) is None


def test_marks_of_two_runs_are_named_apart():
    texts = [each for each in _spec(["a", "b", "c"])["layer"] if each["mark"]["type"] == "text"]
    named = [each["transform"][-1]["filter"]["oneOf"] for each in texts]
    assert named == [["a", "c"], ["b"]]
    (above, below) = ((e["mark"]["align"], e["encoding"]["y"]["value"]) for e in texts)
    assert above != below
