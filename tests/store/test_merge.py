"""Merging files is merging surveys, and memory holds one place of two runs."""

import errno
import gc
import weakref

import numpy as np
import pytest

from isoscope.accumulate import ACCUMULATORS, ArrayBlock, CentredDirections
from isoscope.accumulate.heads import STATISTICS
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.errors import MergeError, StoreError
from isoscope.hashing import named_documents
from isoscope.store import load, save
from isoscope.store.run import merge_states
from isoscope.store.state import StateReader

KINDS = tuple(kind for kind in ACCUMULATORS if kind not in SECOND_PASS)
SITES = ("resid.0", "resid.1", "embed.weight")
WIDTH = len(STATISTICS)  # of any kind at all: scores of queries have no other


def survey(seed, sites=SITES, kinds=KINDS):
    rng = np.random.default_rng(seed)
    found = Survey()
    for site in sites:
        matrix = site.endswith(".weight")
        for row_class in ("all",) if matrix else ("ordinary", "special"):
            names = np.repeat([f"{seed}-{row_class}-{i}" for i in range(6)], 4)
            rows = rng.normal(size=(24, WIDTH)).astype(np.float32)
            positions = np.tile(np.arange(4, dtype=np.uint64), 6)
            block = ArrayBlock(rows, named_documents(names), positions)
            found.update((site, row_class), kinds, block)
            second = CentredDirections(WIDTH, np.full(WIDTH, float(seed)))
            second.update(block)
            found.held[site, row_class][CentredDirections] = second
    return found


@pytest.fixture
def run_of(here, readings, origin, config):
    def write(name, survey):
        return load(save(here / name, survey, readings(), origin(), config))

    return write


def bits(survey):
    meta, arrays = survey.to_state()
    return meta, {name: array.tobytes() for name, array in arrays.items()}


def merged_in_memory(surveys):
    """What merging whole surveys gives: matrices once, and no second pass of several."""
    total = Survey()
    for each in surveys:
        known = {place for place in total.held if place[0].endswith(".weight")}
        parts = {
            place: {
                k: v for k, v in held.items() if k not in SECOND_PASS or "weight" in place[0]
            }
            for place, held in each.held.items()
            if place not in known
        }
        total.merge(Survey(parts, trouble=each.trouble))
    return total


def test_merging_files_is_merging_surveys(run_of, tmp_path):
    parts = [survey(1), survey(2, SITES[1:]), survey(3, ("resid.2", *SITES))]
    runs = [run_of(f"r{i}", part) for i, part in enumerate(parts)]
    merge_states(runs, tmp_path / "out")
    found = StateReader(tmp_path / "out").whole_survey()
    assert bits(found) == bits(merged_in_memory(run.survey for run in runs))
    assert CentredDirections in found.held["embed.weight", "all"]
    assert CentredDirections not in found.held["resid.0", "ordinary"]


def test_one_run_is_copied_with_its_second_passes(run_of, tmp_path):
    run = run_of("r", survey(1))
    merge_states([run], tmp_path / "out")
    assert bits(StateReader(tmp_path / "out").whole_survey()) == bits(run.survey)


def test_a_site_in_trouble_is_carried_on_with_the_first_reason(run_of, tmp_path):
    parts = [survey(i) for i in range(3)]
    parts[1].drop("resid.1", "NaN in document 7")
    parts[2].drop("resid.1", "NaN in document 9")
    merge_states([run_of(f"r{i}", part) for i, part in enumerate(parts)], tmp_path / "out")
    reader = StateReader(tmp_path / "out")
    assert reader.trouble == {"resid.1": "NaN in document 7"}
    assert reader.sites == ("resid.0", "embed.weight")


def test_memory_does_not_grow_with_the_places(run_of, tmp_path, monkeypatch):
    sites = tuple(f"resid.{i}" for i in range(12))
    kinds = KINDS[:2]
    runs = [run_of(f"r{i}", survey(i, sites, kinds)) for i in range(3)]
    alive, most = weakref.WeakSet(), []
    gc.freeze()  # what other tests loaded would be looked through at every collection below
    original = Survey.from_state.__func__

    class Part(Survey):
        __hash__ = object.__hash__

    def counted(cls, meta, arrays):
        found = original(Part, meta, arrays)
        assert len(found.held) <= 1
        gc.collect()
        alive.add(found)
        most.append(len(alive))
        return found

    monkeypatch.setattr(Survey, "from_state", classmethod(counted))
    merge_states(runs, tmp_path / "out")
    assert len(most) == 3 * 2 * len(sites)
    assert max(most) <= 2


def test_different_summaries_do_not_merge(run_of, tmp_path):
    runs = [run_of("a", survey(1)), run_of("b", survey(2, kinds=KINDS[:3]))]
    with pytest.raises(MergeError, match="kept different summaries"):
        merge_states(runs, tmp_path / "out")
    assert not list(tmp_path.glob("out*"))


def test_a_full_disk_is_reported(run_of, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    run = run_of("a", survey(1))
    monkeypatch.setattr("isoscope.store.state.StateWriter.add", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        merge_states([run], tmp_path / "out")
    assert caught.value.slug == "store-write"
