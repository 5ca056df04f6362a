"""Runs: what is written is read back, and parts measured apart are the whole."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isoscope as iso
from isoscope.api import measure, merge, read
from isoscope.comparison.outcomes import worst
from isoscope.errors import (
    ConfigError,
    MergeError,
    StoreError,
    TooFewRowsError,
    UnknownNameError,
)
from isoscope.measures import MEASURES
from isoscope.store.state import StateReader
from isoscope.study.reading import read_survey

DEFAULT = [m.name for m in MEASURES.values() if m.default]
SAMPLED = ["uniformity", "twonn", "mle-dimension"]


def cloud(n=1500, d=16, *, seed=1, kind=np.float64):
    spread = np.arange(1, d + 1) ** -0.5
    rows = np.random.default_rng(seed).normal(size=(n, d)) * spread + 0.5
    return rows.astype(kind)


def everything(readings):
    return [(r.measure, r.value, r.low, r.high, r.n, r.d, r.warnings) for r in readings]


def by_name(readings):
    return {reading.measure: reading for reading in readings}


def write_parts(folder, kind, named):
    """Two files of vectors, as npy or as tables with a column of documents."""
    folder.mkdir()
    for i, n in enumerate((1500, 1000)):
        rows = cloud(n, seed=i, kind=kind)
        if not named:
            np.save(folder / f"part-{i}.npy", rows)
            continue
        names = [f"{i}-{j // 10}" for j in range(n)]
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 16)
        pq.write_table(pa.table({"text": names, "v": vectors}), folder / f"part-{i}.parquet")
    return sorted(folder.iterdir())


@pytest.mark.parametrize("named", [False, True], ids=["rows", "documents"])
@pytest.mark.parametrize(("kind", "rel"), [(np.float64, 1e-9), (np.float32, 1e-6)])
def test_parts_that_were_measured_apart_merge_into_the_folder(tmp_path, kind, rel, named):
    parts = write_parts(tmp_path / "parts", kind, named)
    how = {"document": "text"} if named else {}
    whole = measure(tmp_path / "parts", **how)
    for part in parts:
        measure(part, output=tmp_path / part.stem, **how)
    total = merge([tmp_path / part.stem for part in parts], tmp_path / "total")
    assert [r.measure for r in total] == [r.measure for r in whole] == DEFAULT
    for ours, theirs in zip(total, whole, strict=True):
        sampled = ours.measure in SAMPLED
        exactly = theirs.value if sampled else pytest.approx(theirs.value, rel=rel, abs=rel)
        assert ours.value == exactly, ours.measure
        # Intervals come from sketches and samples, which are kept in float32.
        width = theirs.high - theirs.low
        assert ours.low == pytest.approx(theirs.low, abs=1e-3 * width), ours.measure
        assert ours.high == pytest.approx(theirs.high, abs=1e-3 * width), ours.measure
        assert (ours.n, ours.d, ours.warnings) == (theirs.n, theirs.d, theirs.warnings)


def test_the_order_of_the_runs_does_not_matter(tmp_path):
    for i in range(3):
        measure(cloud(300, seed=i), output=tmp_path / f"r{i}", name=f"r{i}")
    runs = [tmp_path / f"r{i}" for i in range(3)]
    one, other = merge(runs, tmp_path / "a"), merge(runs[::-1], tmp_path / "b")
    for ours, theirs in zip(one, other, strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-9)


def test_a_merged_run_merges_again(tmp_path):
    for i in range(3):
        measure(cloud(300, seed=i), output=tmp_path / f"r{i}", name=f"r{i}")
    runs = [tmp_path / f"r{i}" for i in range(3)]
    merge(runs[:2], tmp_path / "ab")
    step, once = (
        merge([tmp_path / "ab", runs[2]], tmp_path / "abc"),
        merge(runs, tmp_path / "x"),
    )
    for ours, theirs in zip(step, once, strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-9)


def test_a_run_reads_back_as_it_was_measured(tmp_path):
    found = measure(cloud(300), output=tmp_path / "run", all=True)
    back = read(tmp_path / "run")
    assert list(back) == list(found)
    assert back.left_out == found.left_out
    assert back.isotropic == found.isotropic
    assert back[0].run == "run"
    assert str(back) == str(found)


def test_chosen_measures_are_read_in_the_order_requested(tmp_path):
    measure(cloud(300), output=tmp_path / "run", all=True)
    found = read(tmp_path / "run", measures=["partition", "isoscore"])
    names = ["partition", "partition-log", "partition-reference", "isoscore"]
    assert [reading.measure for reading in found] == names


def test_a_measure_that_was_not_read_before_comes_from_the_summaries(tmp_path):
    rows = cloud(300)
    measure(rows, measures=["isoscore"], output=tmp_path / "run")
    found = by_name(read(tmp_path / "run", measures=["effective-rank", "isoscore"]))
    expected = by_name(measure(rows, measures=["effective-rank", "isoscore"]))
    for name, reading in expected.items():
        assert found[name].value == pytest.approx(reading.value, rel=1e-12)
        assert found[name].low == pytest.approx(reading.low, rel=1e-6)
    assert [r.measure for r in read(tmp_path / "run")] == ["isoscore"]  # nothing was written


def test_a_second_pass_that_was_not_made_is_read_off_the_sample(tmp_path):
    measure(cloud(3000), output=tmp_path / "run")
    (found,) = read(tmp_path / "run", measures=["mean-cosine-centred"])
    assert "from a sample of 2048 of 3000 rows" in found.warnings


def test_a_measure_whose_summaries_were_not_kept_cannot_be_read(tmp_path):
    measure(cloud(300), measures=["mean-cosine"], output=tmp_path / "run")
    with pytest.raises(TooFewRowsError, match="no moments were kept") as caught:
        read(tmp_path / "run", measures=["isoscore"])
    assert caught.value.slug == "nothing-to-read"


def test_settings_of_the_run_hold_for_measures_read_later(tmp_path):
    rows = cloud(300)
    measure(rows, measures=["isoscore"], zeta=0.7, output=tmp_path / "run")
    (found,) = read(tmp_path / "run", measures=["isoscore-star"])
    (expected,) = measure(rows, measures=["isoscore-star"], zeta=0.7)
    assert found.value == pytest.approx(expected.value, rel=1e-12)


def test_unknown_measures_and_sites_are_refused(tmp_path):
    measure(cloud(300), measures=["isoscore"], output=tmp_path / "run")
    with pytest.raises(UnknownNameError, match="no measure is called 'isoscor'"):
        read(tmp_path / "run", measures=["isoscor"])
    with pytest.raises(UnknownNameError, match="no site is called 'row'") as caught:
        read(tmp_path / "run", sites=["row"])
    assert caught.value.hint == "did you mean 'rows'?"
    assert len(read(tmp_path / "run", sites=["rows"])) == 1


def test_what_was_excluded_is_reported_again(tmp_path):
    found = measure(np.ones((60, 5)), output=tmp_path / "run")
    assert found.left_out
    assert read(tmp_path / "run").left_out == found.left_out


def test_a_second_pass_is_kept_and_not_merged(tmp_path):
    for i in range(2):
        measure(cloud(1500, seed=i), output=tmp_path / f"r{i}", name=f"r{i}", all=True)
    total = by_name(merge([tmp_path / "r0", tmp_path / "r1"], tmp_path / "total"))
    assert "from a sample of 2048 of 3000 rows" in total["mean-cosine-centred"].warnings
    assert not any("sample" in w for w in total["mean-cosine"].warnings)


def test_skipped_rows_are_still_reported_after_merging(tmp_path):
    for i in range(2):
        rows = cloud(300, seed=i)
        rows[: i + 1] = np.nan
        measure(rows, output=tmp_path / f"r{i}", name=f"r{i}", skip_bad=True)
    for reading in merge([tmp_path / "r0", tmp_path / "r1"], tmp_path / "total"):
        assert "3 rows skipped: they were not finite numbers" in reading.warnings


@pytest.mark.parametrize(
    "how",
    [
        {"seed": 1},
        {"zeta": 0.5},
        {"measures": ["isoscore"]},
        {"skip_bad": True},
        {"document": np.repeat(np.arange(30), 10)},
    ],
    ids=lambda how: next(iter(how)),
)
def test_runs_of_different_settings_do_not_merge(tmp_path, how):
    measure(cloud(300), output=tmp_path / "a", name="a")
    measure(cloud(300, seed=2), output=tmp_path / "b", name="b", **how)
    with pytest.raises(MergeError, match="cannot merge"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("other", [{"d": 15}, {"kind": np.float32}], ids=["width", "type"])
def test_runs_of_different_rows_do_not_merge(tmp_path, other):
    measure(cloud(300), output=tmp_path / "a", name="a")
    measure(cloud(300, seed=2, **other), output=tmp_path / "b", name="b")
    with pytest.raises(MergeError, match="cannot merge runs of different"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


def test_the_same_rows_are_not_added_twice(tmp_path):
    measure(cloud(300), output=tmp_path / "a", name="a")
    measure(cloud(300), output=tmp_path / "b", name="b")
    with pytest.raises(MergeError, match="they hold the same rows"):
        merge([tmp_path / "a", tmp_path / "b"], tmp_path / "c")


def test_nothing_cannot_be_merged(tmp_path):
    with pytest.raises(ConfigError, match="a merge needs at least 1 run, got 0"):
        merge([], tmp_path / "c")


def test_an_output_is_replaced_only_on_request(tmp_path):
    measure(cloud(300), measures=["isoscore"], output=tmp_path / "run")
    with pytest.raises(StoreError):
        measure(cloud(300), measures=["alpha"], output=tmp_path / "run")
    assert [r.measure for r in read(tmp_path / "run")] == ["isoscore"]
    measure(cloud(300), measures=["alpha"], output=tmp_path / "run", overwrite=True)
    assert [r.measure for r in read(tmp_path / "run")] == ["alpha"]


def test_a_loaded_run_has_its_survey(tmp_path):
    found = measure(cloud(300), measures=["isoscore"], output=tmp_path / "run")
    survey = iso.load(tmp_path / "run").survey
    assert read_survey(survey, ["isoscore"])[0][0].value == pytest.approx(
        found[0].value, rel=1e-12
    )


def test_measuring_with_an_output_reads_the_same(tmp_path):
    rows = cloud(300)
    kept, plain = measure(rows, output=tmp_path / "run"), measure(rows)
    assert everything(kept) == everything(plain)


def damage_state(folder):
    path = folder / "state.safetensors"
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)


def test_readings_of_a_run_with_a_damaged_state_are_read(tmp_path):
    found = measure(cloud(300), measures=["mean-cosine", "isoscore"], output=tmp_path / "run")
    damage_state(tmp_path / "run")
    assert list(read(tmp_path / "run", measures=["mean-cosine"])) == [found[0]]
    with pytest.raises(StoreError, match="checksum"):
        read(tmp_path / "run", measures=["alpha"])


def test_a_gate_on_readings_needs_no_state(tmp_path):
    measure(cloud(300), measures=["mean-cosine", "isoscore"], output=tmp_path / "run")
    damage_state(tmp_path / "run")
    assert worst(iso.check(tmp_path / "run", "mean-cosine > 2")) == "holds"


def test_missing_measures_are_read_at_the_sites_requested(tiny_run, monkeypatch):
    read_at = []
    original = StateReader.part

    def counted(self, places):
        places = list(places)
        read_at.append({site for site, _ in places})
        return original(self, places)

    monkeypatch.setattr(StateReader, "part", counted)
    everywhere = read(tiny_run, measures=["mean-cosine-centred"])
    assert all(len(sites) == 1 for sites in read_at)
    read_at.clear()
    here = read(tiny_run, measures=["mean-cosine-centred"], sites=["resid.0"])
    assert read_at == [{"resid.0"}]
    assert list(here) == [each for each in everywhere if each.site == "resid.0"]
    read_at.clear()
    with pytest.raises(UnknownNameError, match=r"no site is called 'resid\.7'"):
        read(tiny_run, measures=["mean-cosine-centred"], sites=["resid.7"])
    assert not read_at


def test_merging_reads_one_place_at_a_time(tmp_path, monkeypatch):
    for i in range(2):
        measure(cloud(300, seed=i), output=tmp_path / f"r{i}", name=f"r{i}")
    monkeypatch.setattr("isoscope.store.run.Run.survey", None)  # what reads a whole state
    total = merge([tmp_path / "r0", tmp_path / "r1"], tmp_path / "total")
    assert {reading.n for reading in total} == {600}
    assert {each.name for each in tmp_path.iterdir()} == {"r0", "r1", "total"}


@pytest.mark.parametrize(
    ("dtype", "bound", "slope"), [("float32", 1e-7, 1e-4), ("float64", 1e-11, 1e-9)]
)
@pytest.mark.parametrize("shift", [0.5, 300.0])
def test_merged_shards_read_what_the_whole_reads_within_the_bound_of_the_docs(
    tmp_path, dtype, bound, slope, shift
):
    rng = np.random.default_rng(0)
    (tmp_path / "parts").mkdir()
    for part in range(4):
        rows = (rng.normal(size=(400, 8)) + shift).astype(dtype)
        np.save(tmp_path / "parts" / f"{part}.npy", rows)
        iso.measure(tmp_path / "parts" / f"{part}.npy", output=tmp_path / f"{part}")
    whole = {each.measure: each.value for each in iso.measure(tmp_path / "parts")}
    merged = iso.merge([tmp_path / f"{part}" for part in range(4)], tmp_path / "merged")
    assert {each.measure for each in merged} == whole.keys()
    for each in merged:
        rel = slope if each.measure == "alpha" else bound
        assert each.value == pytest.approx(whole[each.measure], rel=rel, abs=bound), (
            each.measure
        )
