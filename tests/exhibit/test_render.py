"""Pages, figures, and runs that display themselves."""

import base64
import json
import re
import sys
import zlib

import numpy as np
import pytest

import isoscope as iso
from isoscope.display import Results
from isoscope.errors import ConfigError, StoreError, UndefinedError, UnknownNameError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure")
    rows = np.random.default_rng(0).normal(size=(300, 12)) + 0.5
    iso.measure(rows, output=folder / "run", name="cloud")
    return folder / "run"


def told(path):
    """Return what the marks of a picture say of themselves, as name and value."""
    labels = re.findall(r'aria-label="([^"]*)" role="graphics-symbol"', path.read_text())
    lines = [dict(part.split(": ", 1) for part in each.split("; ")) for each in labels]
    return [{k: v.replace("\u2212", "-") for k, v in line.items()} for line in lines]


def test_a_measure_chooses_the_chart(run, tmp_path):
    one = iso.figure(run, tmp_path / "a.svg", measures=["isoscore-debiased"])
    text = one.read_text()
    assert text.count("<svg") == 2
    assert "IsoScore" in text and "Mean share" not in text


TITLES = {
    "isoscore": "IsoScore, plain",
    "isoscore-debiased": "IsoScore, debiased",
    "mean-cosine": "Mean cosine, plain",
    "mean-cosine-cross": "Mean cosine, debiased",
    "effective-rank": "Effective rank, plain",
    "effective-rank-debiased": "Effective rank, debiased",
    "mean-share": "Mean share, plain",
}


def titles(path):
    return re.findall(r">([A-Z][A-Za-z ]*(?:, [a-z]+)?)</text>", path.read_text())


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("name", TITLES)
def test_the_measure_that_is_named_is_drawn_and_labelled(run, tmp_path, name, plain):
    path = iso.figure(run, tmp_path / "a.svg", measures=[name], plain=plain)
    (value,) = {float(mark["value"]) for mark in told(path) if "value" in mark}
    reading = next(each for each in iso.load(run).readings if each.measure == name)
    assert value == pytest.approx(reading.value, rel=1e-3)
    assert titles(path) == [TITLES[name]]


def test_both_estimates_may_stand_side_by_side(run, tmp_path):
    names = ["isoscore-debiased", "isoscore", "mean-share", "isoscore"]
    path = iso.figure(run, tmp_path / "a.svg", measures=names)
    assert titles(path) == ["IsoScore, debiased", "IsoScore, plain", "Mean share, plain"]


def test_without_a_measure_the_estimate_is_chosen_and_labelled(run, tmp_path):
    for plain, form in ((False, "debiased"), (True, "plain")):
        path = iso.figure(run, tmp_path / f"{form}.svg", plain=plain)
        assert titles(path) == [
            f"Mean cosine, {form}", f"IsoScore, {form}", f"Effective rank, {form}",
            f"Mean share, {form}",
        ]  # fmt: skip


def test_one_estimate_alone_is_labelled_and_the_other_is_not_drawn(tmp_path):
    rows = np.random.default_rng(1).normal(size=(60, 4))
    iso.measure(rows, measures=["isoscore-debiased"], output=tmp_path / "one")
    assert titles(iso.figure(tmp_path / "one", tmp_path / "a.svg")) == ["IsoScore, debiased"]
    with pytest.raises(UnknownNameError, match="no measure is called 'isoscore'"):
        iso.figure(tmp_path / "one", tmp_path / "b.svg", measures=["isoscore"])


def test_a_figure_of_bands_has_the_readings_of_a_real_survey(tiny_run, tmp_path):
    marks = told(iso.figure(tiny_run, tmp_path / "a.svg", kind="bands", site="resid.1"))
    found = {
        f"position {m['position in the document']}": float(m["value"])
        for m in marks
        if "position in the document" in m and "value" in m
    }
    expected = {
        r.group: r.value
        for r in iso.load(tiny_run).readings
        if (r.site, r.variant) == ("resid.1", "all") and r.group.startswith("position")
    }
    assert found.keys() == expected.keys() and len(found) >= 4
    for band, value in found.items():
        assert value == pytest.approx(expected[band], rel=1e-3)


def test_a_figure_of_causes_has_the_shares_of_a_real_survey(tiny_run, tmp_path):
    marks = told(iso.figure(tiny_run, tmp_path / "a.svg", kind="causes"))
    found = {(m["site"], m["cause"]): m["share"] for m in marks if "share" in m and "site" in m}
    expected = {(c.site, c.cause): c for c in iso.explain(tiny_run)}
    stream = [key for key in expected if key[0] not in ("embed.weight", "pooled")]
    assert sorted(found) == sorted(stream) and len(found) >= 20
    for key, share in found.items():
        assert float(share.rstrip("%")) == pytest.approx(100 * expected[key].share, abs=0.1)


def test_a_figure_of_the_norm_has_its_three_stages(tiny_run, tmp_path):
    path = iso.figure(
        tiny_run, tmp_path / "a.svg", kind="norm", measures=["isoscore"], plain=True
    )
    values = {m["at"]: float(m["value"]) for m in told(path) if "value" in m}
    readings = {
        r.site: r.value
        for r in iso.load(tiny_run).readings
        if (r.measure, r.variant, r.group) == ("isoscore", "all", "")
    }
    for stage, site in (("before", "norm.in"), ("between", "norm.mid"), ("after", "norm.out")):
        assert values[stage] == pytest.approx(readings[site], rel=1e-3)


def test_a_figure_of_a_matrix_has_all_its_rows(tiny_run, tmp_path):
    marks = told(iso.figure(tiny_run, tmp_path / "a.svg", kind="embeddings"))
    readings = iso.load(tiny_run).readings
    n = next(r.n for r in readings if (r.site, r.measure) == ("embed.weight", "isoscore"))
    assert sum(int(m["rows"]) for m in marks) == n


def test_a_figure_of_a_spectrum_has_its_eigenvalues(run, tmp_path):
    marks = told(iso.figure(run, tmp_path / "a.svg", kind="spectrum"))
    points = {int(m["rank"]): float(m["value"]) for m in marks if "value" in m and "rank" in m}
    rows = np.random.default_rng(0).normal(size=(300, 12)) + 0.5
    values = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    assert [points[n] for n in range(1, 13)] == pytest.approx(values / values.mean(), rel=0.01)


def test_a_figure_of_dimensions_has_a_cell_for_each(run, tmp_path):
    marks = told(iso.figure(run, tmp_path / "a.svg", kind="dimensions"))
    assert sorted(int(m["dimension"]) for m in marks if "score" in m) == list(range(12))


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"kind": "layer"}, UnknownNameError, "no figure is called 'layer'"),
        ({"kind": "norm"}, UndefinedError, "cannot draw a figure of norm"),
        ({"width": 3.0}, ConfigError, "got 3"),
        ({"width": float("nan")}, ConfigError, "got nan"),
        ({"measures": ["isoscor"]}, UnknownNameError, "no measure is called"),
        ({"kind": "spectrum", "site": "row"}, UnknownNameError, "no site is called 'row'"),
        ({"variant": "no-sin"}, UnknownNameError, "no variant is called"),
    ],
)
def test_what_cannot_be_drawn_is_reported(run, tmp_path, given, error, match):
    with pytest.raises(error, match=match):
        iso.figure(run, tmp_path / "a.svg", **given)
    assert not (tmp_path / "a.svg").exists()


def test_another_ending_is_refused(run, tmp_path):
    with pytest.raises(ConfigError, match="ending in"):
        iso.figure(run, tmp_path / "a.eps")


def test_a_page_holds_the_readings_of_its_run(run, tmp_path):
    made = iso.report(run, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert text == made.text
    packed = re.search(r'id="values">([^<]*)<', text)[1]
    table = json.loads(zlib.decompress(base64.b64decode(packed)))["readings"]
    values = [each.value for each in iso.load(run).readings]
    assert table["value"]["is"] == pytest.approx(values, rel=1e-7)
    assert 'id="method-isoscore"' in text


def test_readings_at_hand_have_a_page_too():
    readings = iso.measure(np.random.default_rng(1).normal(size=(90, 5)))
    assert "<section" in iso.report(readings).text


def test_what_is_there_is_not_overwritten(run, tmp_path):
    (tmp_path / "page.html").write_text("mine")
    with pytest.raises(StoreError, match="which exists"):
        iso.report(run, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "mine"


def test_without_altair_it_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ConfigError, match="without the package altair"):
        iso.report(run)


def test_a_run_and_its_readings_display_as_tables(tmp_path):
    rows = np.random.default_rng(0).normal(size=(60, 4))
    iso.measure(rows, output=tmp_path / "run", name="<b>cloud</b>")
    run = iso.load(tmp_path / "run")
    assert isinstance(run.readings, Results)
    shown = run._repr_html_()
    assert "isoscore" in shown
    assert "&lt;b&gt;cloud" in shown and "<b>" not in shown
    assert run.survey.held
