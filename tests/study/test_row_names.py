"""Ids and texts of rows, from every kind of source to the warnings and errors that use them."""

import csv
import hashlib
import json

import numpy as np
import pytest
from click.testing import CliRunner

import isoscope as iso
from isoscope.cli.main import app
from isoscope.errors import RowError

N, WIDTH = 400, 6
IDS = [f"doc-{i}" for i in range(N)]
TEXTS = [f"the text {i}, <b>bold</b>\x1b[31m and long enough to be cut" for i in range(N)]
COPIES = 'copies of another row (id doc-3 ("the text 3, <b>bold</b>'


@pytest.fixture
def rows():
    rows = np.random.default_rng(4).normal(size=(N, WIDTH)).astype(np.float32)
    rows[30], rows[31] = rows[3], rows[4]
    rows[50] = 0
    rows[60] *= 500
    return rows


def as_array(rows, _folder):
    return rows, {"id": IDS, "text": TEXTS}


def as_npy(rows, folder):
    np.save(folder / "v.npy", rows)
    np.save(folder / "ids.npy", np.array(IDS))
    np.save(folder / "texts.npy", np.array(TEXTS))
    return folder / "v.npy", {"id": str(folder / "ids.npy"), "text": str(folder / "texts.npy")}


def as_jsonl(rows, folder):
    lines = [
        json.dumps({"v": row.tolist(), "id": name, "text": text})
        for row, name, text in zip(rows, IDS, TEXTS, strict=True)
    ]
    (folder / "v.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "v.jsonl", {"column": "v", "id": "id", "text": "text"}


def as_csv(rows, folder):
    with (folder / "v.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "said", *(f"x{i}" for i in range(WIDTH))])
        for row, name, text in zip(rows.tolist(), IDS, TEXTS, strict=True):
            writer.writerow([name, text, *row])
    return folder / "v.csv", {"id": "name", "text": "said"}


def as_parquet(rows, folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"v": list(rows), "id": IDS, "text": TEXTS})
    pq.write_table(table, folder / "v.parquet", row_group_size=90)
    return folder / "v.parquet", {"column": "v", "id": "id", "text": "text"}


SOURCES = [as_array, as_npy, as_jsonl, as_csv, as_parquet]
sources = pytest.mark.parametrize("source", SOURCES, ids=lambda make: make.__name__[3:])
NAMES = ["mean-cosine", "norm-spread"]


def warnings_of(readings):
    return {reading.measure: "\n".join(reading.warnings) for reading in readings}


@sources
def test_warnings_name_copies_zero_and_long_rows(source, rows, tmp_path):
    vectors, options = source(rows, tmp_path)
    found = warnings_of(iso.measure(vectors, measures=NAMES, **options))
    assert COPIES in found["mean-cosine"]
    assert '= id doc-30 ("' in found["mean-cosine"]
    assert 'they have no direction (id doc-50 ("the text 50' in found["mean-cosine"]
    assert 'far longer than the median: id doc-60 ("' in found["norm-spread"]
    assert "\x1b" not in found["mean-cosine"] and r"\x1b[31m" in found["mean-cosine"]


@pytest.mark.parametrize("source", [as_array, as_npy, as_parquet])
def test_a_row_that_is_refused_or_skipped_is_named(source, rows, tmp_path):
    rows[70, 2] = np.nan
    vectors, options = source(rows, tmp_path)
    with pytest.raises(RowError, match=r'NaN in row 70 \(counted from 0\), id doc-70 \("the'):
        iso.measure(vectors, measures=NAMES, **options)
    found = warnings_of(iso.measure(vectors, measures=NAMES, skip_bad=True, **options))
    assert (
        '1 rows skipped: they were not finite numbers (id doc-70 ("the' in found["mean-cosine"]
    )


def test_ids_alone_and_texts_alone_are_enough(rows):
    only_ids = warnings_of(iso.measure(rows, measures=NAMES, id=IDS))["mean-cosine"]
    assert "copies of another row (id doc-3 = id doc-30, id doc-4 = id doc-31)" in only_ids
    only_texts = warnings_of(iso.measure(rows, measures=NAMES, text=TEXTS))["mean-cosine"]
    assert 'another row (row 3 ("the text 3' in only_texts


def state_of(folder):
    return hashlib.sha256((folder / "state.safetensors").read_bytes()).hexdigest()


def test_without_names_a_run_is_as_it_was_and_with_them_numbers_are_the_same(rows, tmp_path):
    plain = iso.measure(rows, measures=NAMES, output=tmp_path / "a" / "run")
    named = iso.measure(rows, measures=NAMES, id=IDS, output=tmp_path / "b" / "run")
    assert [(r.value, r.low, r.high) for r in plain] == [
        (r.value, r.low, r.high) for r in named
    ]
    ours = iso.load(tmp_path / "a" / "run").survey.to_state()
    theirs = iso.load(tmp_path / "b" / "run").survey.to_state()
    assert not any("NamedRows" in name for name in ours[1])
    for name, array in ours[1].items():
        np.testing.assert_array_equal(theirs[1][name], array, err_msg=name)


def test_engines_name_the_same_rows(rows, tmp_path):
    vectors, options = as_parquet(rows, tmp_path)
    here = iso.measure(vectors, measures=NAMES, output=tmp_path / "a" / "run", **options)
    pool = iso.measure(
        vectors,
        measures=NAMES,
        output=tmp_path / "b" / "run",
        engine="pool",
        workers=2,
        **options,
    )
    assert warnings_of(here) == warnings_of(pool)
    assert state_of(tmp_path / "a" / "run") == state_of(tmp_path / "b" / "run")


def test_runs_that_are_merged_name_rows_of_both(tmp_path):
    rows = np.random.default_rng(5).normal(size=(N, WIDTH))
    halves = ((0, 200), (200, N))
    for number, (start, end) in enumerate(halves):
        part = np.array(rows[start:end])
        part[10] = part[11]
        iso.measure(
            part,
            measures=NAMES,
            id=IDS[start:end],
            name=f"half-{number}",
            output=tmp_path / f"half-{number}",
        )
    for order in ((0, 1), (1, 0)):
        folders = [tmp_path / f"half-{number}" for number in order]
        whole = tmp_path / f"whole-{order[0]}"
        iso.merge(folders, output=whole)
        found = warnings_of(iso.read(whole, measures=NAMES))["mean-cosine"]
        assert "id doc-10 = id doc-11" in found and "id doc-210 = id doc-211" in found


def test_a_run_with_names_and_one_without_merge(rows, tmp_path):
    iso.measure(rows[:200], measures=NAMES, name="a", id=IDS[:200], output=tmp_path / "a")
    iso.measure(rows[200:], measures=NAMES, name="b", output=tmp_path / "b")
    for number, order in enumerate((("a", "b"), ("b", "a"))):
        whole = tmp_path / f"whole-{number}"
        iso.merge([tmp_path / name for name in order], output=whole)
        assert (
            "id doc-3 = id doc-30"
            in warnings_of(iso.read(whole, measures=NAMES))["mean-cosine"]
        )


def test_the_command_names_rows_under_every_engine(rows, tmp_path, forked_pool):
    vectors, _ = as_parquet(rows, tmp_path)
    flags = ["--column", "v", "--id", "id", "--text", "text", "-m", "mean-cosine"]
    for engine in ("here", "pool"):
        words = ["measure", str(vectors), *flags, "--engine", engine]
        done = CliRunner().invoke(app, words, prog_name="isoscope")
        assert done.exit_code == 0, done.stderr
        printed = " ".join((done.stdout + done.stderr).split())
        assert "copies of another row (id doc-3" in printed
        assert "\x1b[31m" not in printed
