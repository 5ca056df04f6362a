"""isoscope report."""

import json


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


def test_a_page_is_replaced_only_when_asked(isoscope, runs, place):
    assert isoscope("report", "runs/a", "-o", "page.html").exit_code == 0
    again = isoscope("report", "runs/a", "-o", "page.html")
    assert again.exit_code == 2
    assert "docs/errors.md#file-exists" in again.stderr
    assert isoscope("report", "runs/a", "-o", "page.html", "--overwrite").exit_code == 0
    (place / "notes.html").write_text("mine")
    foreign = isoscope("report", "runs/a", "-o", "notes.html", "--overwrite")
    assert foreign.exit_code == 2
    assert (place / "notes.html").read_text() == "mine"


def test_a_run_that_is_not_there_is_one_clear_line(isoscope, place):
    done = isoscope("report", "runs/none", "-o", "page.html")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: no run folder is called 'runs/none'")
    assert not (place / "page.html").exists()
