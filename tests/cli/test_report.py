"""isoscope report."""

import base64
import json
import re
import zlib


def test_it_prints_the_path_of_the_page(isoscope, runs, place):
    done = isoscope("report", "runs/a", "-o", "page.html")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "page.html\n"
    assert "MB" in done.stderr
    assert "<section" in (place / "page.html").read_text()


def test_json_is_one_object(isoscope, runs):
    done = isoscope("report", "runs/a", "runs/b", "-o", "page.html", "--json")
    told = json.loads(done.stdout)
    assert told["page"] == "page.html" and told["runs"] == 2
    assert told["bytes"] < 1.5e6


def test_a_page_is_replaced_only_on_request(isoscope, runs, place):
    assert isoscope("report", "runs/a", "-o", "page.html").exit_code == 0
    again = isoscope("report", "runs/a", "-o", "page.html")
    assert again.exit_code == 2
    assert "isoscope help file-exists" in again.stderr
    assert isoscope("report", "runs/a", "-o", "page.html", "--overwrite").exit_code == 0
    (place / "notes.html").write_text("mine")
    foreign = isoscope("report", "runs/a", "-o", "notes.html", "--overwrite")
    assert foreign.exit_code == 2
    assert (place / "notes.html").read_text() == "mine"


def test_a_run_of_a_newer_schema_is_one_clear_line(isoscope, runs, place):
    manifest = json.loads((runs / "a" / "run.json").read_text())
    (runs / "a" / "run.json").write_text(json.dumps({**manifest, "schema": 99}))
    for words in (("report",), ("figure", "--kind", "layers")):
        done = isoscope(words[0], "runs/a", *words[1:], "-o", "out.svg")
        assert done.exit_code == 2
        assert "schema 1 or less, got 99" in done.stderr.splitlines()[0]
        assert "isoscope help store-newer" in done.stderr
        assert not (place / "out.svg").exists()


def test_a_run_with_one_measure_has_a_page(isoscope, place):
    assert isoscope("measure", "vectors.npy", "-m", "alpha", "-o", "runs/one").exit_code == 0
    done = isoscope("report", "runs/one", "-o", "page.html")
    assert done.exit_code == 0, done.stderr
    text = (place / "page.html").read_text()
    assert "The verdict needs mean-cosine" in text
    assert 'data-chart="layers-' not in text  # a collection has no profile of single dots
    packed = re.search(r'id="values">([^<]*)<', text)[1]
    values = json.loads(zlib.decompress(base64.b64decode(packed)))
    assert values["readings"]["measure"]["words"] == ["alpha"]
    assert 'id="method-alpha"' in text


def test_a_run_that_is_not_there_is_one_clear_line(isoscope, place):
    done = isoscope("report", "runs/none", "-o", "page.html")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: no run folder is called 'runs/none'")
    assert not (place / "page.html").exists()
