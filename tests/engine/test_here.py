"""Units are done once, in any number of goes, with the same result to the last bit."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from isoscope.store.unit import Units

from isoscope.accumulate import Block, Moments, Reservoir, Tally
from isoscope.accumulate.hashing import named_documents
from isoscope.engine import here
from isoscope.errors import StoreError
from isoscope.store.state import read_state
from isoscope.survey import Survey

PLACE = ("resid.0", "all")
KINDS = (Tally, Moments, Reservoir)


def units(n=11):
    return Units.of([{"documents": [number]} for number in range(n)])


def work(unit):
    rng = np.random.default_rng(unit.number)
    # about zero blocks share an origin, elsewhere each has its own
    rows = rng.normal(size=(40, 6)).astype(np.float32) + (3 if unit.number % 3 == 0 else 0)
    names = np.repeat([f"{unit.number}-{i}" for i in range(8)], 5)
    block = Block(rows, named_documents(names), np.tile(np.arange(5, dtype=np.uint64), 8))
    survey = Survey()
    survey.update(PLACE, KINDS, block)
    return survey


def surveyed(folder, units, work, **given):
    """Return all units added up, as a survey."""
    frontier = here(units, work, folder, **given)
    out = folder.with_suffix(".total")
    out.unlink(missing_ok=True)
    return Survey.from_state(*read_state(out)) if frontier.total(out) else Survey()


def bits(survey):
    return {name: array.tobytes() for name, array in survey.to_state()[1].items()}


def test_a_run_in_one_go_has_all_rows(tmp_path):
    survey = surveyed(tmp_path / "nodes", units(), work)
    assert survey.held[PLACE][Tally].count == 11 * 40


@pytest.mark.parametrize("stop", [0, 1, 4, 7, 10])
def test_a_run_that_stopped_goes_on_with_the_same_bits(tmp_path, stop):
    whole = surveyed(tmp_path / "whole", units(), work)

    def tired(unit):
        if unit.number == stop:
            raise KeyboardInterrupt
        return work(unit)

    with pytest.raises(KeyboardInterrupt):
        surveyed(tmp_path / "nodes", units(), tired)
    done = []

    def counted(unit):
        done.append(unit.number)
        return work(unit)

    assert bits(surveyed(tmp_path / "nodes", units(), counted)) == bits(whole)
    assert done == list(range(stop, 11))


def test_a_damaged_node_is_done_again(tmp_path):
    whole = surveyed(tmp_path / "whole", units(4), work)
    surveyed(tmp_path / "nodes", units(4), work)
    (node,) = (tmp_path / "nodes").glob("node-*")
    node.write_bytes(node.read_bytes()[:-1] + b"?")
    assert bits(surveyed(tmp_path / "nodes", units(4), work)) == bits(whole)


def test_few_files_are_kept(tmp_path):
    surveyed(tmp_path / "nodes", units(11), work)
    assert len(list((tmp_path / "nodes").glob("node-*"))) == 3  # 8 + 2 + 1


def test_units_of_another_run_are_refused(tmp_path):
    surveyed(tmp_path / "nodes", units(4), work)
    with pytest.raises(StoreError, match=r"cannot resume .* with other units of work"):
        surveyed(tmp_path / "nodes", units(5), work)


def test_no_units_are_an_empty_survey(tmp_path):
    assert surveyed(tmp_path / "nodes", units(0), work).held == {}


def test_progress_counts_units(tmp_path):
    seen = []
    surveyed(tmp_path / "nodes", units(3), work, progress=lambda *told: seen.append(told))
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]


SLOWLY = """
import sys, time
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_here import units, work
from isoscope.engine import here

def slowly(unit):
    time.sleep(0.05)
    print(unit.number, flush=True)
    return work(unit)

here(units(), slowly, Path(sys.argv[1]))
"""


@pytest.mark.parametrize("after", [2, 6])
def test_a_killed_process_loses_at_most_the_unit_it_was_at(tmp_path, after):
    whole = surveyed(tmp_path / "whole", units(), work)
    code = SLOWLY.format(tests=os.path.dirname(__file__))  # noqa: PTH120
    job = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "nodes")], stdout=subprocess.PIPE, text=True
    )
    for line in job.stdout:
        if int(line) == after:
            time.sleep(0.01)
            job.send_signal(signal.SIGKILL)
            break
    job.wait()
    done = []

    def counted(unit):
        done.append(unit.number)
        return work(unit)

    assert bits(surveyed(tmp_path / "nodes", units(), counted)) == bits(whole)
    assert done[0] >= after


def test_another_keeper_holds_records_instead_of_surveys(tmp_path):
    from isoscope.store.ledger import Ledger

    done = []

    def record(unit):
        done.append(unit.number)
        return {"number": unit.number}

    first = here(units(3), record, tmp_path / "units", keep=Ledger)
    again = here(units(3), record, tmp_path / "units", keep=Ledger)
    assert done == [0, 1, 2]
    assert first.all() == again.all() == [{"number": number} for number in range(3)]
