"""isoscope explain: causes on stdout, what is left out on stderr."""

import json

import pytest

from isoscope.api import explain


def test_it_prints_one_line_per_cause(isoscope, runs):
    done = isoscope("explain", "runs/a")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("run a, site rows, variant all, by removal: shares of the mean")
    assert [line.split()[0] for line in lines[3:5]] == ["sinks", "dimensions"]
    assert "frequency and position are not explained" in lines[-1]


@pytest.mark.parametrize("flag", ["--csv", "--latex", "--markdown", "--json"])
def test_every_format_is_what_python_gives(isoscope, runs, flag):
    done = isoscope("explain", "runs/a", "-s", "rows", flag)
    assert done.exit_code == 0
    assert done.stdout == getattr(explain(runs / "a"), f"to_{flag[2:]}")()


def test_json_says_which_scale_a_share_is_on(isoscope, runs):
    done = isoscope("explain", "runs/a", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line["scale"] for line in lines} == {"removal"}


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("runs/a", "-s", "row"), "did you mean 'rows'?"),
        (("runs/a", "--variant", "alls"), "did you mean 'all'?"),
        (("runs/c",), "no run folder is called 'runs/c'"),
        (("runs/a", "--json", "--csv"), "cannot print --json with --csv"),
    ],
)
def test_bad_input_is_one_error_and_a_hint(isoscope, runs, flags, problem):
    done = isoscope("explain", *flags)
    assert done.exit_code == 2
    assert problem in done.stderr and "hint:" in done.stderr
    assert done.stdout == ""
