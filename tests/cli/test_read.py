"""isoscope read: a run in any format."""

import json

import pytest

from isoscope.store import load


def readings(text):
    return [json.loads(line) for line in text.splitlines()]


def test_reading_gives_what_measuring_gave(isoscope, place):
    first = isoscope("measure", "vectors.npy", "-o", "run", "--json", "-q")
    assert isoscope("read", "run", "--json").stdout == first.stdout


@pytest.mark.parametrize("flag", ["--csv", "--latex", "--markdown", "--json"])
def test_every_format_is_what_python_gives(isoscope, runs, flag):
    done = isoscope("read", "runs/a", flag)
    assert done.exit_code == 0
    from isoscope import api

    assert done.stdout == getattr(api.read(runs / "a"), f"to_{flag[2:]}")()


def test_measures_and_sites_are_chosen(isoscope, runs):
    done = isoscope("read", "runs/a", "-m", "isoscore", "-s", "rows", "--json")
    assert [each["measure"] for each in readings(done.stdout)] == ["isoscore"]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("-m", "isoscor"), "did you mean 'isoscore'?"),
        (("-s", "row"), "did you mean 'rows'?"),
    ],
)
def test_a_name_the_run_does_not_have_gets_the_nearest(isoscope, runs, flags, problem):
    done = isoscope("read", "runs/a", *flags)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_a_damaged_run_is_one_clear_error(isoscope, runs):
    (runs / "a" / "readings.parquet").write_bytes(b"x")
    done = isoscope("read", "runs/a")
    assert done.exit_code == 2
    assert "help store-damaged" in done.stderr
    with pytest.raises(Exception, match="cannot read"):
        load(runs / "a")
