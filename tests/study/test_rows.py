"""Vectors are cut into units that end where documents end, whatever does them."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.engine import Notify
from isoscope.study import rows as module
from isoscope.study.lanes import block_rows
from isoscope.study.rows import MeasureSpec, RowsPlan

WIDTH = 2048  # wide rows make small blocks


@pytest.fixture
def folder(tmp_path):
    """Return a folder of files, large enough for several units of small blocks."""
    rng = np.random.default_rng(0)
    place = tmp_path / "vectors"
    place.mkdir()
    for number in range(5):
        rows = rng.normal(size=(700 + 10 * number, 24)) + 0.3
        np.save(place / f"{number}.npy", rows.astype(np.float32))
    return place


@pytest.fixture
def small_units(monkeypatch):
    """Let a unit have 256 rows, and a block 64."""
    monkeypatch.setattr(module, "BLOCKS", 4)
    monkeypatch.setattr(module, "block_rows", lambda *_: 64)


def plan_of(path, **options):
    return MeasureSpec.of(vectors=str(path), **options).open(Notify()).plan()


def test_a_small_source_is_one_unit(folder):
    plan = plan_of(folder)
    assert [len(stage) for stage in plan.stages] == [1]
    assert plan.total() == 5 * 700 + 100
    assert [len(stage) for stage in plan_of(folder, all=True).stages] == [1, 1]


def test_units_cover_every_row_once(folder, small_units):
    plan = plan_of(folder)
    (units,) = plan.stages
    assert len(units) > 10
    assert plan.total() == 5 * 700 + 100 == sum(unit.rows for unit in units)
    assert RowsPlan.decode(plan.encode()) == plan


def test_units_end_where_documents_end(tmp_path, small_units):
    rng = np.random.default_rng(1)
    documents = np.repeat(np.arange(60), rng.integers(1, 60, size=60))
    rows = rng.normal(size=(len(documents), 8)).astype(np.float32)
    np.save(tmp_path / "v.npy", rows)
    np.save(tmp_path / "d.npy", documents)
    spec = MeasureSpec.of(vectors=str(tmp_path / "v.npy"), document=str(tmp_path / "d.npy"))
    worker = spec.open(Notify())
    (units,) = worker.plan().stages
    assert len(units) > 3
    starts = np.cumsum([0, *(unit.rows for unit in units)])[1:-1]
    assert all(documents[start] != documents[start - 1] for start in starts)


def test_the_cut_changes_nothing_but_rounding(folder, small_units, monkeypatch):
    cut = iso.measure(folder, all=True)
    monkeypatch.setattr(module, "BLOCKS", 10**6)
    whole = iso.measure(folder, all=True)
    assert [r.measure for r in cut] == [r.measure for r in whole]
    for one, other in zip(cut, whole, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-6, abs=1e-9), one.measure
        assert (one.n, one.warnings) == (other.n, other.warnings)


def test_rows_of_each_file_are_counted_over_units(folder, small_units, tmp_path):
    iso.measure(folder, output=tmp_path / "run", measures=["isoscore"])
    sources = iso.load(tmp_path / "run").origin.sources
    assert [source.rows for source in sources] == [700, 710, 720, 730, 740]


def test_rows_that_are_skipped_are_counted_over_units(folder, small_units):
    rows = np.load(folder / "2.npy")
    rows[[0, 500]] = np.nan
    np.save(folder / "2.npy", rows)
    found = iso.measure(folder, skip_bad=True, measures=["isoscore"])
    assert "2 rows skipped: they were not finite numbers" in found[0].warnings


def test_an_array_is_one_unit_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("isoscope.study.run.digest", None)  # what addresses are made with
    monkeypatch.setattr("isoscope.engine.plan.Plan.encode", None)
    found = iso.measure(np.random.default_rng(0).normal(size=(200, 8)), measures=["isoscore"])
    assert len(found) == 1


def test_another_number_of_threads_changes_only_rounding(folder):
    one, two = (iso.measure(folder, threads=threads) for threads in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-6), a.measure


def test_the_usual_threads_are_those_of_before(folder):
    assert MeasureSpec.of(vectors="v").threads == 2
    assert block_rows(WIDTH) > 256
