"""One side of a comparison."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.comparison.side import Side, gap_between, names_of, two_runs
from isoscope.measures import MEASURES, level
from isoscope.measures.interval import quantile
from isoscope.store import load, open_run


def test_spreads_are_those_that_intervals_are_made_of(collections):
    side = Side.of(load(collections("a")), "all")
    told = 0
    for reading in side.readings.values():
        spread = side.spread(reading)
        half = (reading.high - reading.low) / 2
        if spread.centre is not None or reading.measure == "norm-spread":
            continue  # below, and one whose upper end reaches further
        if abs(reading.high + reading.low - 2 * reading.value) < 1e-9 * abs(reading.value):
            # symmetric: neither of a logarithm nor cut off at a bound
            assert quantile(spread.freedom) * spread.error == pytest.approx(half, rel=1e-6)
            told += 1
        else:
            # to first order; the logarithm bends it by less than a fifth here
            assert quantile(spread.freedom) * spread.error == pytest.approx(half, rel=0.2)
    assert told > 4


def test_spreads_of_plain_readings_are_those_of_the_population_s_value(collections):
    side = Side.of(load(collections("a")), "all")
    spreads = {name: side.spread(each) for (_, _, name), each in side.readings.items()}
    plain = [name for name, spread in spreads.items() if spread.centre is not None]
    assert {"mean-cosine", "mean-share", "isoscore", "effective-rank", "rankme"} <= {*plain}
    for name in plain:
        reading = side.readings["rows", None, name]
        ends = [
            spreads[name].centre + sign * quantile(spreads[name].freedom) * spreads[name].error
            for sign in (-1, 1)
        ]
        most = level(MEASURES[name].bounds[1], reading.n, reading.d)
        ends[1] = ends[1] if most is None else min(ends[1], most)
        # the interval holds the plain value too; a logarithm bends its ends a little
        slack = 0.2 * (ends[1] - ends[0])
        assert reading.low == pytest.approx(min(ends[0], reading.value), abs=slack)
        assert reading.high == pytest.approx(max(ends[1], reading.value), abs=slack)
    twin = side.readings["rows", None, "effective-rank-debiased"]
    assert spreads["effective-rank"].centre == pytest.approx(twin.value)


def test_a_companion_has_no_spread_and_is_taken_as_independent(collections):
    sides = [Side.of(load(collections(name, all=True)), "all", ["partition"]) for name in "ab"]
    keys = [("rows", None, name) for name in ("partition", "partition-log")]
    how = []
    for key in keys:
        a, b = (side.readings[key] for side in sides)
        how.append(gap_between(sides[0], a, sides[1], b, paired=True)[1])
    assert how == [True, False]


def test_what_the_run_cannot_tell_is_no_reading(collections):
    side = Side.of(load(collections("a")), "all", ["self-similarity"])
    assert side.readings == {} and side.sites == [] and side.measures == []


def test_readings_of_steps_have_no_spread(handmade):
    run = load(handmade("a", [("embed", "isoscore", 0.5, 0.4, 0.6)], step=7))
    side = Side.of(run, "all")
    assert side.spread(side.readings["embed", 7, "isoscore"]) is None


def test_a_run_is_taken_as_it_is_and_a_path_is_loaded(handmade):
    folder = handmade("a", [("embed", "isoscore", 0.5, 0.4, 0.6)])
    run = load(folder)
    assert open_run(run) is run
    assert open_run(folder).readings == run.readings


ROW = [("embed", "isoscore", 0.5, 0.4, 0.6)]


@pytest.fixture
def clouds(tmp_path):
    """Two models' vectors of the same 400 texts, in files, and those of other texts."""
    rng = np.random.default_rng(0)
    texts, others = rng.normal(size=(2, 400, 8))
    rows = [texts + 0.7, texts + 0.1 * rng.normal(size=texts.shape) + 0.75, others[:90]]
    for name, cloud in zip(("old.npy", "new.npy", "few.npy"), rows, strict=True):
        np.save(tmp_path / name, cloud.astype(np.float32))
    return tmp_path


def test_a_run_stays_and_a_folder_is_loaded(handmade):
    run = load(handmade("a", ROW))
    with two_runs(run, run.path) as (first, second):
        assert first is run
        assert second.readings == run.readings


def test_vectors_are_measured_into_a_folder_that_goes_again(clouds):
    rows = np.load(clouds / "old.npy")
    with two_runs(clouds / "old.npy", rows, ["isoscore"]) as (first, second):
        assert [r.measure for r in first.readings] == ["isoscore"]
        assert first.readings[0].value == second.readings[0].value
        place = first.path
    assert not place.exists()


def test_vectors_are_paired_row_by_row(clouds):
    changes = iso.compare(clouds / "old.npy", np.load(clouds / "new.npy"))
    assert all(each.paired for each in changes if each.low is not None)
    assert tuple(changes.shared.values())[:2] == ("old.npy", "vectors b")
    moved = next(each for each in changes if each.measure == "mean-cosine")
    assert moved.verdict == "changed"
    apart = iso.compare(clouds / "old.npy", clouds / "few.npy")
    assert not any(each.paired for each in apart)


def test_things_of_one_name_are_distinguished_by_their_paths(handmade, tmp_path):
    (tmp_path / "old").mkdir()
    first, second = load(handmade("a", ROW)), load(handmade("old/a", ROW))
    assert names_of(first, second) == (str(tmp_path / "a"), str(tmp_path / "old" / "a"))
    assert names_of(first, handmade("b", ROW)) == ("a", "b")
    assert names_of(tmp_path / "x" / "v.npy", tmp_path / "y" / "v.npy") == (
        str(tmp_path / "x" / "v.npy"),
        str(tmp_path / "y" / "v.npy"),
    )
    assert names_of(np.ones((2, 2)), np.ones((2, 2))) == ("vectors a", "vectors b")
