"""Before, between and after the final norm."""

from dataclasses import replace

import pytest

from isoscope.lab.norm.section import show


def test_rows_are_the_three_stages(demo):
    panel = show([demo])
    chart = next(c for c in panel.charts if c.name == "norm-mean-cosine")
    rows = chart.rows(variant="all", form="debiased")
    assert [r["at"] for r in rows] == ["before", "between", "after"]
    assert rows[2]["value"] == demo.reading("mean-cosine-cross", "norm.out").value


def test_the_final_norm_of_a_real_survey_is_its_readings(surveyed):
    panel = show([surveyed])
    for name, measures in (
        ("norm-mean-cosine", {"plain": "mean-cosine", "debiased": "mean-cosine-cross"}),
        ("norm-effective-rank", {"plain": "effective-rank"}),
        ("norm-norm-spread", {"": "norm-spread"}),
    ):
        chart = next(c for c in panel.charts if c.name == name)
        for form, measure in measures.items():
            rows = chart.rows(variant="all", **({"form": form} if form else {}))
            assert [r["at"] for r in rows] == ["before", "between", "after"]
            assert [r["value"] for r in rows] == [
                surveyed.reading(measure, site).value
                for site in ("norm.in", "norm.mid", "norm.out")
            ]
    spread = next(c for c in panel.charts if c.name == "norm-norm-spread").rows(variant="all")
    assert spread[1]["value"] == pytest.approx(0, abs=1e-3)  # normalised: all of one length
    assert spread[0]["value"] > 0.01


def test_one_side_alone_is_no_section(demo):
    rest = [r for r in demo.readings if not r.site.startswith("norm") or r.site == "norm.out"]
    assert show([replace(demo, readings=rest)]) is None
