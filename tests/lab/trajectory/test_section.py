"""The section of a series: its charts, its switches, its figure, and the size of its page."""

import shutil

import numpy as np
import pytest
from made_up_series import PYTHIA, sites_of, write_series

import isoscope as iso
from isoscope.errors import UnknownNameError
from isoscope.exhibit.exhibit import exhibits
from isoscope.lab.trajectory.curves import TrajectoryCurves
from isoscope.lab.trajectory.section import SECTION

STEPS = (0, 10, 20, 40, 80, 160)
MEASURES = ("mean-cosine", "mean-cosine-cross", "isoscore-debiased")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "small"
    return write_series(folder, STEPS, layers=3, measures=MEASURES)


@pytest.fixture(scope="module")
def panel(small):
    return SECTION.show(exhibits(small))


def chart(panel, name):
    return next(each for each in panel.charts if each.name == f"trajectory-{name}")


def test_the_map_has_a_cell_for_every_site_and_step_of_the_chosen_measure(panel):
    rows = chart(panel, "map").rows(**panel.positions)
    assert {row["measure"] for row in rows} == {"mean-cosine-cross"}
    assert {(row["site"], row["step"]) for row in rows} == {
        (site, step) for site in sites_of(3) for step in STEPS
    }
    begins = [next(row["left"] for row in rows if row["step"] == step) for step in STEPS]
    assert all(a <= step < b for step, a, b in zip(STEPS, begins, begins[1:], strict=False))
    assert {row["right"] > 160 for row in rows} == {True}  # later cells cover earlier ones


def test_a_cell_that_is_missing_is_not_covered_by_those_before_it(small):
    (exhibit,) = exhibits(small)
    (curve,) = exhibit.curves_of(TrajectoryCurves)
    curve.values[0, 3, 2] = np.nan
    rows = chart(SECTION.show([exhibit]), "map").rows(measure=curve.measures[0])
    here = {row["step"]: row for row in rows if row["site"] == curve.sites[2]}
    assert 40 not in here
    assert here[0]["right"] == here[20]["right"] < 40 < here[80]["left"]
    assert here[80]["right"] > 160


def test_curves_are_of_the_ticked_sites_and_the_profile_of_the_step(panel):
    chosen = panel.positions | {"site": ("embed", "resid.2"), "step": "20"}
    curves = chart(panel, "curves").rows(**chosen)
    assert {row["site"] for row in curves} == {"embed", "resid.2"}
    assert {row["step"] for row in curves} == set(STEPS)
    assert all(row["low"] < row["value"] < row["high"] for row in curves)
    profile = chart(panel, "profile").rows(**chosen)
    assert {row["site"] for row in profile} == set(sites_of(3))
    assert {row["step"] for row in profile} == {20}
    spectra = chart(panel, "spectrum").rows(**chosen)
    assert {(row["site"], row["step"]) for row in spectra} == {("embed", 20), ("resid.2", 20)}
    assert len(chart(panel, "metric").rows(**chosen)) == len(STEPS)


def test_steps_are_a_logarithm_or_linear(panel):
    for name in ("map", "curves", "metric"):
        found = chart(panel, name)
        kinds = {
            axis: str(found.spec_at({"axis": axis})).count("symlog")
            for axis in ("log", "linear")
        }
        assert kinds["log"] >= 1 and kinds["linear"] == 0


def test_the_page_has_a_slider_boxes_and_the_columns_of_the_map_once(small):
    page = iso.report(small).text
    assert 'type="range"' in page and 'data-values="0,10,20,40,80,160"' in page
    assert 'type="checkbox"' in page and '<section id="trajectory"' in page
    assert "What changes when, as a table" in page


def test_the_verdict_says_what_changed_from_the_first_step_to_the_last(small):
    (exhibit,) = exhibits(small)
    assert "from step 0 to 160" in exhibit.findings[0].text
    assert {each.step for each in exhibit.readings} == {160}


def test_a_figure_is_drawn_of_a_measure_and_a_site(small, tmp_path):
    made = iso.figure(
        small,
        tmp_path / "map.svg",
        kind="trajectory",
        measures=["isoscore-debiased"],
        site="resid.1",
    )
    drawn = made.read_text()
    assert drawn.count("<svg") > 1
    assert "IsoScore, debiased" in drawn and "step 160" in drawn
    with pytest.raises(UnknownNameError, match="nothing"):
        iso.figure(small, tmp_path / "b.svg", kind="trajectory", measures=["nothing"])


def test_a_damaged_file_of_steps_is_a_remark_on_the_page(small, tmp_path):
    shutil.copytree(small, tmp_path / "damaged")
    (tmp_path / "damaged" / "series.msgpack").write_bytes(b"\x00" * 20)
    (exhibit,) = exhibits(tmp_path / "damaged")
    assert any("series.msgpack" in text for text in exhibit.remarks)


@pytest.mark.slow
def test_the_page_of_154_steps_of_25_sites_is_below_one_and_a_half_megabytes(tmp_path):
    assert len(PYTHIA) == 154 and len(sites_of(21)) == 25
    run = write_series(tmp_path / "run", lines=False)
    text = iso.report(run).text
    assert 400_000 < len(text.encode()) < 1_500_000
    (panel,) = (SECTION.show(exhibits(run)),)
    rows = chart(panel, "map").rows(**panel.positions)
    assert len(rows) == 154 * 25
    assert np.isfinite([row["value"] for row in rows]).all()
