"""The library call behind each command, on whatever people keep vectors in."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import isoscope as iso
from isoscope.api import measure
from isoscope.display import Results
from isoscope.errors import (
    ConfigError,
    IsoscopeError,
    RowError,
    SourceError,
    StoreError,
    TooFewRowsError,
    UnknownNameError,
)
from isoscope.measures import MEASURES
from isoscope.study.measure_choice import measure_names

SOME = ["mean-cosine", "isoscore", "effective-rank", "norm-spread"]
DEFAULT = [m.name for m in MEASURES.values() if m.default and m.offered != "text"]
EVERY = [m.name for m in MEASURES.values() if m.offered not in ("text", "heads", "gradients")]


def cloud(n=400, d=16, *, mean=0.5, seed=1):
    spread = np.arange(1, d + 1) ** -0.5
    return np.random.default_rng(seed).normal(size=(n, d)) * spread + mean


def values(readings):
    return {reading.measure: reading.value for reading in readings}


def everything(readings):
    """All that a reading says, but not of which run."""
    return [(r.measure, r.value, r.low, r.high, r.n, r.d, r.warnings) for r in readings]


# --- what can be measured ---------------------------------------------------------------


def test_an_array_gives_readings_of_the_default_set():
    found = measure(cloud())
    assert isinstance(found, Results)
    assert [reading.measure for reading in found] == DEFAULT
    assert all((r.site, r.variant, r.n, r.d) == ("rows", "all", 400, 16) for r in found)
    assert all(r.low <= r.value <= r.high for r in found)


def test_the_front_door_is_the_same_call():
    assert everything(iso.measure(cloud(), measures=SOME)) == everything(
        measure(cloud(), measures=SOME)
    )


def test_a_list_of_lists_is_an_array():
    rows = cloud(50)
    assert everything(measure(rows.tolist(), measures=SOME)) == everything(
        measure(rows, measures=SOME)
    )


@pytest.mark.parametrize("kind", ["float16", "float32", "int8", "int32"])
def test_narrow_types_are_measured_as_what_they_hold(kind):
    rows = (cloud() * 20).astype(kind)
    ours, wide = (values(measure(each, measures=SOME)) for each in (rows, rows.astype(float)))
    assert ours == pytest.approx(wide, rel=1e-5)


def test_a_tensor_is_an_array():
    torch = pytest.importorskip("torch")
    rows = cloud().astype(np.float32)
    tensor = torch.from_numpy(rows).requires_grad_()
    assert everything(measure(tensor, measures=SOME)) == everything(
        measure(rows, measures=SOME)
    )


def test_a_tensor_of_brain_floats_is_measured_as_what_it_holds():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(cloud()).to(torch.bfloat16)
    assert everything(measure(tensor, measures=SOME)) == everything(
        measure(tensor.float().numpy(), measures=SOME)
    )


@pytest.mark.parametrize("frame", [pd.Series, pl.Series], ids=["pandas", "polars"])
def test_a_column_of_a_frame_is_an_array(frame):
    rows = cloud()
    column = frame(list(rows))
    assert values(measure(column, measures=SOME)) == pytest.approx(
        values(measure(rows, measures=SOME)), rel=1e-12
    )


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_frame_has_its_documents_in_a_column(frame):
    rows, names = cloud(), np.repeat([f"d{i}" for i in range(40)], 10)
    table = frame({"text": names, "embedding": list(rows)})
    ours = measure(table, column="embedding", document="text", measures=SOME)
    assert everything(ours) == everything(measure(rows, document=names, measures=SOME))


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pl.Series])
def test_documents_may_come_as_any_sequence(kind):
    rows, names = cloud(), [f"d{i // 10}" for i in range(400)]
    ours = measure(rows, document=kind(names), measures=SOME)
    assert everything(ours) == everything(measure(rows, document=names, measures=SOME))


def test_documents_may_be_numbers_or_their_digits():
    rows, numbers = cloud(), np.arange(400) // 10
    ours = measure(rows, document=numbers, measures=SOME)
    assert everything(ours) == everything(
        measure(rows, document=numbers.astype(str), measures=SOME)
    )


def test_documents_widen_the_interval_of_rows_that_hang_together():
    rng = np.random.default_rng(5)
    names = np.repeat(np.arange(40), 20)
    rows = rng.normal(size=(800, 8)) + 2 * rng.normal(size=(40, 8))[names] + 1
    (alone,), (together,) = (
        measure(rows, document=document, measures="mean-cosine") for document in (None, names)
    )
    assert together.value == pytest.approx(alone.value, rel=1e-12)
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_documents_that_come_back_are_refused():
    names = ["a", "b", "a", "b"] * 100
    with pytest.raises(SourceError, match="got document 'a' again in row 2"):
        measure(cloud(), document=names)


@pytest.mark.parametrize("spelt", [str, lambda path: path], ids=["text", "path"])
def test_a_path_is_read(tmp_path, spelt):
    np.save(tmp_path / "v.npy", cloud())
    ours = measure(spelt(tmp_path / "v.npy"), measures=SOME)
    assert values(ours) == pytest.approx(values(measure(cloud(), measures=SOME)), rel=1e-12)
    assert ours[0].run == "v"


def test_a_name_says_what_the_rows_are_of():
    assert measure(cloud(), name="study", measures=SOME)[0].run == "study"


def test_a_second_pass_over_a_file_reads_it_twice(tmp_path):
    np.save(tmp_path / "v.npy", cloud(3000))
    found = measure(tmp_path / "v.npy", measures=["mean-cosine-centred"])
    assert not any("sample" in warning for warning in found[0].warnings)
    rows = cloud(3000)
    moved = rows - rows.mean(axis=0)
    units = moved / np.linalg.norm(moved, axis=1)[:, None]
    total = units.sum(axis=0)
    assert found[0].value == pytest.approx((total @ total - 3000) / (3000 * 2999), abs=1e-12)


def test_a_stream_is_read_once_and_its_sample_stands_in(tmp_path):
    np.save(tmp_path / "v.npy", cloud(3000))
    with (tmp_path / "v.npy").open("rb") as stream:
        found = measure(stream, all=True)
    said = {r.measure for r in found if "from a sample of 2048 of 3000 rows" in r.warnings}
    assert {"mean-cosine-centred", "partition", "uniformity"} <= said
    assert "mean-cosine" not in said


# --- which measures ---------------------------------------------------------------------


def test_the_default_set_needs_one_pass_and_all_adds_the_others():
    assert list(measure_names(None)) == DEFAULT
    assert list(measure_names(None, all=True)) == EVERY
    assert "partition" not in DEFAULT and "mean-cosine-centred" not in DEFAULT


def test_names_are_kept_in_order_each_once():
    assert measure_names(["isoscore", "alpha", "isoscore"]) == ("isoscore", "alpha")
    assert measure_names("alpha") == ("alpha",)


def test_an_unknown_measure_is_refused_before_anything_is_read():
    with pytest.raises(UnknownNameError, match="no measure is called 'mean-cosin'") as caught:
        measure("no/such/file.npy", measures=["mean-cosin"])
    assert caught.value.hint == "did you mean 'mean-cosine'?"


def test_all_measures_are_read_with_their_companions():
    found = measure(cloud(), all=True)
    names = [reading.measure for reading in found]
    assert set(EVERY) <= set(names)
    assert names[-3:] == ["partition", "partition-log", "partition-reference"]


@pytest.mark.parametrize("zeta", [-0.1, 1.5])
def test_a_zeta_that_is_none_is_refused(zeta):
    with pytest.raises(ConfigError, match="expected at least 0 and at most 1 as zeta"):
        measure(cloud(), measures=["isoscore-star"], zeta=zeta)


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, "a"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(ConfigError, match=r"expected a whole number from 0 to"):
        measure(cloud(), seed=seed)


def test_as_published_changes_what_was_published_otherwise():
    ours, theirs = (values(measure(cloud(), as_published=p, all=True)) for p in (False, True))
    changed = {name for name in ours if ours[name] != pytest.approx(theirs[name], rel=1e-9)}
    beside = {"partition-log", "partition-reference"}
    assert changed == {"isoscore-star", "partition", *beside}


# Halves tell the luck of what outlier-share chooses, and neighbours are of sampled rows.
DEALT = ("-debiased", "outlier-share", "twonn", "mle-dimension")
PLAIN = [name for name in DEFAULT if not name.endswith(DEALT)]


def test_the_seed_deals_halves_and_groups_anew_but_moves_no_plain_value():
    names = np.repeat(np.arange(80), 5)
    one, other = (measure(cloud(), document=names, seed=seed) for seed in (0, 1))
    ours, theirs = values(one), values(other)
    for name in PLAIN:
        assert ours[name] == pytest.approx(theirs[name], rel=1e-9), name
    for name in ("isoscore-debiased", "effective-rank-debiased"):
        assert ours[name] != pytest.approx(theirs[name], rel=1e-6), name
    lows = [[r.low for r in found if r.measure == "mean-cosine"] for found in (one, other)]
    assert lows[0] != lows[1]


def test_the_seed_draws_another_sample():
    one, other = (measure(cloud(5000), measures=["uniformity"], seed=s) for s in (0, 1))
    assert one[0].value != other[0].value
    assert one[0].value == pytest.approx(other[0].value, abs=0.05)


def test_progress_is_reported_all_rows():
    told = []
    measure(cloud(), measures=SOME, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (400, 400)


# --- rows there is little to say of -----------------------------------------------------


@pytest.mark.parametrize("rows", [np.ones((1, 4)), np.ones((1, 1))])
def test_one_row_is_too_few(rows):
    with pytest.raises(TooFewRowsError, match="a measure needs at least 2 rows, got 1"):
        measure(rows)


def test_no_row_is_left_when_all_are_bad():
    with pytest.raises(TooFewRowsError, match="at least 2 rows, got 0"):
        measure(np.full((9, 3), np.nan), skip_bad=True)


def test_two_rows_give_what_two_rows_can():
    found = measure(np.array([[1.0, 0, 0], [0, 1, 0]]), all=True)
    got = values(found)
    assert got["mean-cosine"] == pytest.approx(0, abs=1e-12)
    assert got["isoscore"] == pytest.approx(0, abs=1e-12)
    assert got["effective-rank"] == pytest.approx(1)
    assert got["mean-share"] == pytest.approx(0.5)
    out = {each.partition(":")[0] for each in found.left_out}
    assert {"isoscore-debiased", "twonn", "mle-dimension", "alpha"} <= out
    assert not out & set(got)


def test_identical_rows_give_what_is_defined_and_say_why_not_the_rest():
    found = measure(np.full((60, 5), 0.1, dtype=np.float32))
    got = values(found)
    assert got["mean-cosine"] == got["mean-cosine-cross"] == pytest.approx(1, abs=1e-6)
    assert got["mean-share"] == pytest.approx(1, abs=1e-6)
    assert got["norm-spread"] == pytest.approx(0, abs=1e-6)
    assert got["rankme"] == pytest.approx(1, abs=1e-4)
    assert got["uniformity"] == pytest.approx(0, abs=1e-6)
    reasons = dict(each.split(": ", 1) for each in found.left_out)
    assert reasons["isoscore"] == "a spectrum needs rows that differ, got identical rows"
    assert "at least 22 distinct rows, got 1" in reasons["twonn"]
    assert set(got) | set(reasons) == set(DEFAULT)


def test_only_zeros_leave_nothing_to_read():
    with pytest.raises(TooFewRowsError) as caught:
        measure(np.zeros((50, 4)), measures=["mean-cosine", "mean-share"])
    assert caught.value.slug == "nothing-to-read"
    assert "none of these measures can be computed" in caught.value.hint


def test_no_measures_are_nothing_to_read():
    with pytest.raises(TooFewRowsError, match="a reading needs at least 1 measure, got 0"):
        measure(cloud(), measures=[])


def test_one_dimension_has_no_directions_to_compare():
    found = measure(cloud(d=1))
    assert any("isoscore needs at least 2 dimensions" in each for each in found.left_out)
    assert values(found)["participation"] == pytest.approx(1)


@pytest.mark.parametrize("rows", [np.eye(6), np.repeat(np.eye(6), 9, axis=0), cloud(9, 40)])
def test_no_reading_is_ever_no_number(rows):
    for reading in measure(rows, all=True):
        assert np.isfinite(reading.value), reading.measure
        for end in (reading.low, reading.high):
            assert end is None or np.isfinite(end), reading.measure


def test_bad_rows_are_refused_by_name_or_skipped_and_counted():
    rows = cloud()
    rows[[17, 300], 3] = np.nan
    with pytest.raises(RowError, match="NaN in row 17"):
        measure(rows)
    found = measure(rows, skip_bad=True, measures=SOME)
    assert all(r.n == 398 for r in found)
    assert all("2 rows skipped: they were not finite numbers" in r.warnings for r in found)
    assert values(found) == pytest.approx(
        values(measure(np.delete(rows, [17, 300], axis=0), measures=SOME)), rel=1e-12
    )


@pytest.mark.parametrize(
    "wrong", [np.ones(5), np.ones((2, 3, 4)), np.ones((3, 3)) * 1j, 5, "no-such-file.npy", [[]]]
)
def test_what_is_no_collection_of_vectors_is_one_of_our_errors(wrong):
    with pytest.raises(IsoscopeError):
        measure(wrong)


def test_an_output_that_exists_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("keep")
    with pytest.raises(StoreError):
        measure("no/such/file.npy", output=tmp_path / "run")


# --- the cone ---------------------------------------------------------------------------


def test_the_cone_that_was_planted_is_found(cone):
    got = {reading.measure: reading for reading in cone}
    cosine = got["mean-cosine"]
    assert cosine.value > 0.1 and cosine.low > 0.1  # isotropic rows read 0
    assert cone.isotropic["mean-cosine", cosine.n, cosine.d] == 0
    assert abs(got["mean-cosine-centred"].value) < 0.01
    assert cosine.run == "planted-cone" and (cosine.n, cosine.d) == (20_000, 128)
    assert set(EVERY) <= set(got)


def test_the_spectrum_that_was_planted_is_read(cone):
    """Axes of variance 1/i: the participation ratio of the population is known."""
    got = {reading.measure: reading for reading in cone}
    shares = 1 / np.arange(1, 129)
    truth = (shares.sum() ** 2 / (shares**2).sum() - 1) / 127
    debiased = got["isoscore-debiased"]
    assert debiased.low < truth < debiased.high
    assert got["isoscore"].value < debiased.value
