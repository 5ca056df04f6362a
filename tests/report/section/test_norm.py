"""Before, between and after the final norm."""

from dataclasses import replace

import numpy as np

from isoscope.report.section.norm import show
from isoscope.types import Curve


def test_rows_are_the_three_stages(demo):
    panel = show([demo])
    chart = next(c for c in panel.charts if c.name == "norm-mean-cosine")
    rows = chart.rows(variant="all", form="debiased")
    assert [r["at"] for r in rows] == ["before", "between", "after"]
    assert rows[2]["value"] == demo.reading("mean-cosine-cross", "norm.out").value


def test_the_reference_is_said_where_the_run_knows_it(demo):
    known = Curve("norm", "all", "final-norm", {"reference": np.array(0.34)})
    panel = show([replace(demo, curves=[*demo.curves, known])])
    assert "0.34" in panel.lead[-1]


def test_one_side_alone_is_no_section(demo):
    rest = [r for r in demo.readings if not r.site.startswith("norm") or r.site == "norm.out"]
    assert show([replace(demo, readings=rest)]) is None
