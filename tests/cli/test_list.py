"""What there is to measure."""

import json

import pytest

from isoscope.measures import MEASURES


def test_every_measure_is_listed_with_its_title(isoscope):
    done = isoscope("list", "measures")
    assert done.exit_code == 0
    head, *lines = done.stdout.splitlines()
    assert head.split() == [
        "measure",
        "isotropic",
        "collapsed",
        "passes",
        "--as-published",
        "what",
    ]
    assert [line.split()[0] for line in lines] == list(MEASURES)
    for line, measure in zip(lines, MEASURES.values(), strict=True):
        assert line.endswith(measure.title)


def test_json_tells_what_a_script_may_want(isoscope):
    records = [
        json.loads(line) for line in isoscope("list", "measures", "--json").stdout.splitlines()
    ]
    assert [record["name"] for record in records] == list(MEASURES)
    by_name = {record["name"]: record for record in records}
    assert by_name["participation"]["isotropic"] == "d"
    assert by_name["participation"]["collapsed"] == 1.0
    assert by_name["isoscore"]["isotropic"] == 1.0
    assert by_name["top-share"]["isotropic"] == "1/d"
    assert by_name["uniformity"]["isotropic"] == "varies with d"
    assert by_name["norm-spread"]["isotropic"] is None
    assert by_name["partition"]["second_pass"] is True
    assert all(record["cite"] and record["title"] for record in records)


@pytest.mark.parametrize("what", ["claims"])
def test_what_is_to_come_says_so(isoscope, what):
    done = isoscope("list", what)
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: cannot list {what} yet")


def test_the_sites_of_a_model_are_listed(isoscope, model):
    done = isoscope("list", "sites", model)
    assert done.exit_code == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["family", "sites", "width"]
    rows = [line.split() for line in lines]
    assert ["resid", "3", "24"] in rows
    assert ["q", "6", "12"] in rows
    said = isoscope("list", "sites", model, "--json").stdout.splitlines()
    records = [json.loads(line) for line in said]
    assert [[r["family"], str(r["sites"]), str(r["width"])] for r in records] == rows


def test_sites_are_those_of_some_model(isoscope, place):
    for words, slug in (((), "list-model"), (("./none",), "model-not-found")):
        done = isoscope("list", "sites", *words)
        assert done.exit_code == 2
        assert done.stderr.endswith(f" {slug}\n")
        assert len(done.stderr.splitlines()) == 3


def test_a_wrong_word_gets_the_nearest(isoscope):
    done = isoscope("list", "measure")
    assert done.exit_code == 2
    assert "did you mean 'measures'?" in done.stderr


def test_measures_that_papers_compute_otherwise_are_marked(isoscope):
    table = isoscope("list", "measures").stdout.splitlines()
    assert "--as-published" in table[0]
    marked = {line.split()[0] for line in table[1:] if " differs " in line}
    records = [
        json.loads(line) for line in isoscope("list", "measures", "--json").stdout.splitlines()
    ]
    assert marked == {each["name"] for each in records if each["as_published"]}
    assert marked == {name for name, each in MEASURES.items() if each.published is not None}
