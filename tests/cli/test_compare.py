"""isoscope compare: a table on stdout, in any format; what was left out beside it."""

import json

import pytest

from isoscope.api import compare, read


def test_it_prints_both_runs_and_what_changed(isoscope, runs):
    done = isoscope("compare", "runs/a", "runs/b")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "a: a, b: b, site rows, variant all"
    assert lines[2].split()[:4] == ["measure", "a", "b", "b"]
    assert "independent: a and b have different documents" in done.stdout
    assert "after Holm's correction over" in done.stdout


@pytest.mark.parametrize("flag", ["--csv", "--latex", "--markdown", "--json"])
def test_every_format_is_what_python_gives(isoscope, runs, flag):
    done = isoscope("compare", "runs/a", "runs/b", flag)
    assert done.exit_code == 0
    assert done.stdout == getattr(compare(runs / "a", runs / "b"), f"to_{flag[2:]}")()


def test_measures_and_sites_are_chosen(isoscope, runs):
    done = isoscope("compare", "runs/a", "runs/b", "-m", "isoscore", "-s", "rows", "--json")
    (line,) = (json.loads(line) for line in done.stdout.splitlines())
    assert (line["measure"], line["site"]) == ("isoscore", "rows")
    assert "independent: " in done.stderr


def test_the_same_run_twice_is_the_same(isoscope, runs):
    done = isoscope("compare", "runs/a", "runs/a", "--json")
    assert {json.loads(line)["verdict"] for line in done.stdout.splitlines()} == {"same"}


def test_what_is_negligible_can_be_set(isoscope, runs):
    flags = ("--negligible", "0.25", "--json")
    lines = isoscope("compare", "runs/a", "runs/b", *flags).stdout.splitlines()
    expected = compare(runs / "a", runs / "b", negligible=0.25)
    assert [json.loads(line)["effect"] for line in lines] == [each.effect for each in expected]
    assert {json.loads(line)["negligible_below"] for line in lines} == {0.25}


def test_files_of_vectors_are_measured_first(isoscope, runs, place):
    done = isoscope("compare", "vectors.npy", "other.npy", "--json")
    assert done.exit_code == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["run_a"] for line in lines} == {"vectors.npy"}
    values = {r.measure: r.value for r in read(runs / "a")}
    found = {line["measure"]: line["a"] for line in lines}
    assert found.keys() == values.keys()
    for name in ("mean-cosine", "isoscore", "effective-rank"):  # groups of rows are others
        assert found[name] == pytest.approx(values[name], rel=1e-6)
    assert {path.name for path in place.iterdir()} == {"vectors.npy", "other.npy", "runs"}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("runs/a runs/c", "no run folder is called 'runs/c'"),
        ("runs/a runs/a/run.json", "run.json"),
        ("runs/a none.npy", "no run folder is called 'none.npy'"),
        ("runs/a runs", "which has no run.json"),
        ("runs/a", "missing argument 'B'"),
        ("runs/a runs/b -m isoscor", "no measure is called 'isoscor'"),
        ("runs/a runs/b -s row", "no site is called 'row'"),
        ("runs/a runs/b --variant alls", "no variant is called 'alls'"),
        ("runs/a runs/b --variant no-sink", "expected a reading that both runs have"),
        ("runs/a runs/b --match width", "no match is called 'width'"),
        ("runs/a runs/b --negligible 1.5", "expected a share of at least 0 and below 1"),
        ("runs/a runs/b --json --csv", "cannot print --json with --csv"),
    ],
)
def test_bad_input_is_one_error_and_a_hint(isoscope, runs, line, problem):
    done = isoscope("compare", *line.split())
    assert done.exit_code == 2
    assert problem in done.stderr and "hint:" in done.stderr
    assert done.stdout == ""
