"""isoscope figure."""

import json


def test_it_writes_a_picture_and_prints_its_path(isoscope, runs, place):
    done = isoscope("figure", "runs/a", "--kind", "spectrum", "-o", "a.pdf")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "a.pdf\n"
    assert (place / "a.pdf").read_bytes().startswith(b"%PDF-")


def test_json_is_one_object(isoscope, runs, place):
    done = isoscope("figure", "runs/a", "-o", "a.svg", "--json")
    told = json.loads(done.stdout)
    assert told["kind"] == "layers"
    assert told["bytes"] == (place / "a.svg").stat().st_size


def test_what_cannot_be_drawn_ends_in_exit_2(isoscope, runs):
    done = isoscope("figure", "runs/a", "--kind", "norm", "-o", "a.svg")
    assert done.exit_code == 2
    assert "isoscope help figure-nothing" in done.stderr
