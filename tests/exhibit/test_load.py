"""A run read back shows itself in a notebook."""

import numpy as np

import isoscope as iso
from isoscope.display import Results


def test_a_run_and_its_readings_display_as_tables(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    iso.measure(rows, output=tmp_path / "run", name="<b>cloud</b>")
    run = iso.load(tmp_path / "run")
    assert isinstance(run.readings, Results)
    shown = run._repr_html_()
    assert "isoscore" in shown
    assert "&lt;b&gt;cloud" in shown and "<b>" not in shown
    assert run.survey.held
