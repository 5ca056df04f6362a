"""isoscope read: a run in any format."""

import json

import pytest

from isoscope.accumulate.survey import Survey
from isoscope.display import READINGS, Results
from isoscope.store import load, new_origin, save
from isoscope.types import Reading


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


def layers():
    """Return readings of a model: sinks at one site, bands, and a matrix."""
    sites = [("resid.0", "all", 90), ("resid.0", "no-sink", 90), ("resid.1", "all", 90)]
    sites += [("resid.1", "no-sink", 81), ("embed.weight", "all", 30)]
    for site, variant, n in sites:
        for at, measure in enumerate(("mean-cosine", "isoscore")):
            value = 0.25 * at + 0.1 * (variant == "all")
            yield Reading("m", site, variant, "", None, measure, value, 0.0, 0.5, n, 8)
    yield Reading("m", "resid.0", "all", "rare", None, "mean-cosine", 0.7, None, None, 9, 8)


@pytest.fixture
def surveyed(place):
    origin = new_origin(
        sources=[{"name": "a", "fingerprint": "f", "rows": 90, "dtype": "float32", "width": 8}],
        settings={"zeta": 0.2, "documents": True},
        seed=0,
    )
    save("model", Survey(), Results(layers(), READINGS), origin, {"survey": {}})


def test_a_variant_and_no_bands_are_chosen(isoscope, surveyed):
    found = readings(isoscope("read", "model", "--variant", "no-sink", "--json").stdout)
    assert {(each["site"], each["variant"]) for each in found} == {
        ("resid.0", "no-sink"), ("resid.1", "no-sink"), ("embed.weight", "all"),
    }  # fmt: skip
    found = readings(isoscope("read", "model", "--no-bands", "--json").stdout)
    assert len(found) == 10 and not any(each["group"] for each in found)
    done = isoscope("read", "model", "--variant", "no-sinks")
    assert done.exit_code == 2
    assert "did you mean 'no-sink'?" in done.stderr


def test_the_table_of_layers_comes_in_every_format(isoscope, surveyed):
    def lines(*flags):
        done = isoscope("read", "model", "--wide", *flags)
        assert done.exit_code == 0, done.stderr
        return done.stdout.splitlines()

    latex = [line for line in lines("--latex") if line.endswith(r"\\")]
    assert latex[0] == r"site & variant & mean-cosine & isoscore & n & d \\"
    # resid.0 has no sinks: its rows without them are all rows
    assert [line.split(" & ")[:2] for line in latex[1:]] == [
        ["resid.0", "all"], ["resid.1", "all"], ["resid.1", "no-sink"], ["embed.weight", "all"],
    ]  # fmt: skip
    assert lines("--markdown")[2].startswith("| site | variant | mean-cosine | isoscore |")
    head, first, *_ = lines("--csv")
    assert head == (
        "run,site,variant,group,step,n,d,mean-cosine,mean-cosine low,mean-cosine high,"
        "isoscore,isoscore low,isoscore high"
    )
    assert first == "m,resid.0,all,,,90,8,0.1,0.0,0.5,0.35,0.0,0.5"
    assert len(lines("--json")) == 4
