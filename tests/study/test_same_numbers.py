"""The same numbers for the same data: names, paths and arrays, shards, and equal rows."""

import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isoscope as iso
from isoscope.accumulate import Reservoir
from isoscope.errors import MergeError
from isoscope.store import load

SAMPLED = ["twonn", "uniformity", "isoscore", "mean-cosine", "norm-spread"]


def rows_of(n=3000, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, d)) + 0.4).astype(np.float32)


def numbers(readings):
    return [(r.measure, r.value, r.low, r.high, r.n, r.warnings) for r in readings]


def measure(vectors, **how):
    return numbers(iso.measure(vectors, measures=SAMPLED, **how))


def kept(folder):
    """The documents and rows of the sample of a run."""
    sample = load(folder).survey_of("rows").held["rows", "all"][Reservoir]
    return sample.documents, sample.rows


# --- vectors -----------------------------------------------------------------------------
def test_a_renamed_file_has_the_same_numbers(tmp_path):
    np.save(tmp_path / "a.npy", rows_of())
    before = measure(tmp_path / "a.npy")
    (tmp_path / "a.npy").rename(tmp_path / "b.npy")
    assert measure(tmp_path / "b.npy") == before
    assert measure(tmp_path / "b.npy", name="c") == before


def test_a_path_and_what_is_in_it_have_the_same_numbers(tmp_path):
    rows = rows_of()
    np.save(tmp_path / "a.npy", rows)
    np.savez(tmp_path / "a.npz", rows=rows)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
    table = pa.table({"v": vectors})
    pq.write_table(table, tmp_path / "a.parquet")
    before = measure(rows)
    for other in (tmp_path / "a.npy", tmp_path / "a.npz", tmp_path / "a.parquet", table):
        assert measure(other) == before


def test_a_copy_in_double_precision_has_the_same_sample(tmp_path):
    rows = rows_of()
    for name, kind in (("a", np.float32), ("b", np.float64)):
        iso.measure(rows.astype(kind), measures=["twonn"], output=tmp_path / name)
    np.testing.assert_array_equal(kept(tmp_path / "a")[0], kept(tmp_path / "b")[0])


@pytest.mark.parametrize("engine", ["here", "pool"])
def test_renaming_the_files_of_a_folder_changes_nothing(tmp_path, engine):
    (tmp_path / "x").mkdir()
    for i in range(3):
        np.save(tmp_path / "x" / f"part-{i}.npy", rows_of(1000, seed=i))
    how = {"engine": engine, "workers": 2} if engine == "pool" else {}
    before = measure(tmp_path / "x", **how)
    (tmp_path / "y" / "deep").mkdir(parents=True)
    for i, name in enumerate(("alpha.npy", "beta.npy", "deep/z.npy")):
        shutil.copy(tmp_path / "x" / f"part-{i}.npy", tmp_path / "y" / name)
    assert measure(tmp_path / "y", **how) == before


def test_a_file_that_is_cut_into_units_has_the_same_sample(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", rows_of(9000))
    iso.measure(tmp_path / "a.npy", measures=["twonn"], output=tmp_path / "one")
    monkeypatch.setattr("isoscope.study.rows.BLOCKS", 0.05)
    iso.measure(tmp_path / "a.npy", measures=["twonn"], output=tmp_path / "many")
    for ours, theirs in zip(kept(tmp_path / "one"), kept(tmp_path / "many"), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_shards_of_one_name_that_were_measured_apart_merge(tmp_path):
    for i in range(3):
        rows = rows_of(400, seed=i)
        iso.measure(rows, measures=SAMPLED, output=tmp_path / f"r{i}")
    iso.merge([tmp_path / f"r{i}" for i in range(3)], tmp_path / "whole")
    documents, rows = kept(tmp_path / "whole")
    assert len(documents) == len(np.unique(documents)) == 1200
    every = np.concatenate([rows_of(400, seed=i) for i in range(3)])
    np.testing.assert_array_equal(np.sort(rows, axis=0), np.sort(every, axis=0))


def test_equal_rows_at_different_places_stay_apart(tmp_path):
    rows = np.repeat(rows_of(50), 4, axis=0)
    iso.measure(rows, measures=SAMPLED, output=tmp_path / "run")
    documents, sample = kept(tmp_path / "run")
    assert len(np.unique(documents)) == 200
    np.testing.assert_array_equal(np.sort(sample, axis=0), np.sort(rows, axis=0))


def test_files_that_begin_with_the_same_row_can_be_measured_and_merged(tmp_path):
    (tmp_path / "x").mkdir()
    for i in range(4):
        rows = rows_of(100, seed=i)
        rows[0] = 7.0  # a beginning of sequence, say
        np.save(tmp_path / "x" / f"{i}.npy", rows)
        iso.measure(tmp_path / "x" / f"{i}.npy", measures=SAMPLED, output=tmp_path / f"r{i}")
    whole = iso.measure(tmp_path / "x", measures=SAMPLED)
    total = iso.merge([tmp_path / f"r{i}" for i in range(4)], tmp_path / "total")
    for ours, theirs in zip(whole, total, strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-6)
        assert ours.n == theirs.n == (397 if ours.measure == "twonn" else ours.n)
    assert len(kept(tmp_path / "total")[0]) == 397  # of equal rows at one place one is kept
    assert {r.measure: r.n for r in total}["mean-cosine"] == 400


def test_ids_of_documents_mean_what_they_did(tmp_path):
    rows, ids = rows_of(400), np.repeat(np.arange(100), 4)
    iso.measure(rows, document=ids, measures=SAMPLED, output=tmp_path / "a")
    iso.measure(rows + 1, document=ids, measures=SAMPLED, output=tmp_path / "b")
    np.testing.assert_array_equal(*(np.sort(kept(tmp_path / name)[0]) for name in "ab"))
    with pytest.raises(MergeError, match="same document and position"):
        iso.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "both")


# --- pairs of two models' vectors --------------------------------------------------------
def two_models(n=6000):
    rng = np.random.default_rng(5)
    texts = rng.normal(size=(n, 10)) * np.linspace(0.3, 2, 10)
    return texts + 0.5, texts + 0.55 + 0.05 * rng.normal(size=texts.shape)


def widths(changes):
    return np.array([each.high - each.low for each in changes])


def test_vectors_of_two_models_are_paired_although_their_bytes_differ():
    old, new = two_models()
    names = ["isoscore", "effective-rank", "mean-cosine", "norm-spread"]
    paired = iso.compare(old, new, measures=names)
    apart = iso.compare(old, new[::-1], measures=names)  # row n is of another text
    assert all(each.paired for each in (*paired, *apart))
    assert (widths(paired) < 0.5 * widths(apart)).all()


def test_runs_are_paired_where_both_are_by_order(tmp_path):
    for name, rows in zip("ab", two_models(), strict=True):
        iso.measure(rows, measures=SAMPLED, by_order=True, output=tmp_path / f"{name}-order")
        iso.measure(rows, measures=SAMPLED, output=tmp_path / name)
    assert all(each.paired for each in iso.compare(tmp_path / "a-order", tmp_path / "b-order"))
    apart = iso.compare(tmp_path / "a", tmp_path / "b")
    assert not any(each.paired for each in apart)
    assert "--by-order" in apart.remarks[0]
    mixed = iso.compare(tmp_path / "a-order", tmp_path / "b")
    assert not any(each.paired for each in mixed)
    assert "in different ways" in mixed.remarks[0]


def test_a_run_and_its_own_vectors_are_the_same(tmp_path):
    rows = rows_of()
    iso.measure(rows, measures=SAMPLED, output=tmp_path / "run")
    changes = iso.compare(tmp_path / "run", rows)
    assert {each.verdict for each in changes} == {"same"}
    assert all(each.paired for each in changes)


def test_by_order_the_files_of_a_folder_are_kept_apart(tmp_path):
    (tmp_path / "x").mkdir()
    for i in range(2):
        np.save(tmp_path / "x" / f"{i}.npy", rows_of(500, seed=i))
    iso.measure(tmp_path / "x", measures=SAMPLED, by_order=True, output=tmp_path / "run")
    assert len(np.unique(kept(tmp_path / "run")[0])) == 1000


# --- surveys -----------------------------------------------------------------------------
@pytest.fixture(scope="module")
def renamed(tmp_path_factory):
    """One corpus as a file, under another name, as a folder, and that with other names."""
    place = tmp_path_factory.mktemp("renamed")
    lines = [f"{word} of the {other}\n" for word in WORDS for other in WORDS]
    for name in ("one.txt", "two.txt"):
        (place / name).write_text("".join(lines))
    for folder in ("x", "y"):
        (place / folder).mkdir()
        for number, line in enumerate(lines):
            name = f"{number:03}.txt" if folder == "x" else f"n{number:05}.txt"
            (place / folder / name).write_text(line.strip())
    return place, [line.strip() for line in lines]


WORDS = ["king", "crown", "throne", "sword", "night", "ghost", "word", "queen"]


def survey(tiny, corpus, **how):
    sites = ["resid.0"]
    return numbers(iso.survey(tiny, corpus, sites=sites, measures=SAMPLED, tokens=200, **how))


def test_a_renamed_corpus_gives_the_same_documents_and_numbers(tiny, renamed):
    place, texts = renamed
    before = survey(tiny, place / "one.txt")
    for other in (place / "two.txt", texts, place / "x", place / "y"):
        assert survey(tiny, other) == before


def test_surveys_of_two_corpora_of_one_name_merge(tiny, renamed, tmp_path):
    _, texts = renamed
    for name, part in (("a", texts[:32]), ("b", texts[32:])):
        iso.survey(
            tiny, part, sites=["resid.0"], measures=["isoscore"], tokens=None,
            output=tmp_path / name, frequencies=None,
        )  # fmt: skip
    (found, *_) = iso.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    (whole, *_) = iso.survey(tiny, texts, sites=["resid.0"], measures=["isoscore"], tokens=None)
    assert found.n == whole.n and found.value == pytest.approx(whole.value, rel=1e-5)
