"""isoscope dimensions: tables and formats on stdout, one error for a bad run."""

import json

import pytest

from isoscope import api


def test_a_run_of_a_model_has_one_line_per_site(isoscope, examples):
    done = isoscope("dimensions", "runs/minilm")
    assert done.exit_code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("run minilm, variant all; shares of the mean cosine")
    assert lines[2].split()[0] == "site" and lines[2].split()[-1] == "dimensions"
    assert lines[3].startswith("embed ")


@pytest.mark.parametrize("flag", ["--csv", "--latex", "--markdown", "--json"])
def test_every_format_is_what_python_gives(isoscope, runs, flag):
    done = isoscope("dimensions", "runs/a", "-s", "rows", flag)
    assert done.exit_code == 0
    assert done.stdout == getattr(api.dimensions(runs / "a"), f"to_{flag[2:]}")()


def test_a_variant_is_chosen(isoscope, examples):
    flags = ("-s", "resid.0", "-s", "resid.1", "--variant", "no-special", "--json")
    done = isoscope("dimensions", "runs/minilm", *flags)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["site"], each["variant"]) for each in found] == [
        ("resid.0", "no-special"),
        ("resid.1", "no-special"),
    ]


@pytest.mark.parametrize(
    ("line", "problem", "slug"),
    [
        ("runs/a -s row", "did you mean 'rows'?", "unknown-site"),
        ("runs/a --variant alls", "did you mean 'all'?", "unknown-variant"),
        ("runs/c", "no run folder is called 'runs/c'", "store-missing"),
        ("runs/a --json --csv", "cannot print --json with --csv", "two-formats"),
        ("runs/bare", "expected a site with directions", "summary-not-kept"),
    ],
)
def test_bad_input_is_one_line_and_a_hint(isoscope, typed, runs, line, problem, slug):
    isoscope("measure", "vectors.npy", "-m", "isoscore", "-o", "runs/bare", "-q")
    done = typed(f"isoscope dimensions {line}")
    assert done.returncode == 2 and done.stdout == ""
    said = done.stderr.splitlines()
    assert len(said) == 3 and problem in done.stderr
    assert said[1].startswith("  hint: ") and said[2].endswith(f" {slug}")
