"""The ledger on disk: whole records only, of this very list of units."""

import numpy as np
import pytest
from isoscope.store.ledger import Ledger
from isoscope.store.unit import Units

from isoscope.errors import ResumeError

UNITS = Units.of([{"number": number} for number in range(3)])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "run" / "units"


def test_what_was_added_comes_back_as_plain_values(folder):
    ledger = Ledger(folder, UNITS)
    assert ledger.missing() == [0, 1, 2]
    ledger.add(1, {"value": np.float64(0.1), "list": (1, 2)})
    again = Ledger(folder, UNITS)
    assert again.missing() == [0, 2]
    assert again.records == ledger.records == {1: {"value": 0.1, "list": [1, 2]}}


def test_all_records_come_in_the_order_of_the_units(folder):
    ledger = Ledger(folder, UNITS)
    for number in (2, 0, 1):
        ledger.add(number, {"number": number})
    assert [each["number"] for each in Ledger(folder, UNITS).all()] == [0, 1, 2]


def test_a_file_that_was_cut_off_or_changed_is_done_again(folder):
    ledger = Ledger(folder, UNITS)
    ledger.add(0, {"value": 1})
    (path,) = folder.glob("unit-*")
    path.write_text('{"value":2}')
    assert Ledger(folder, UNITS).missing() == [0, 1, 2]
    assert not path.exists()


def test_what_was_being_written_when_it_was_killed_does_not_count(folder):
    Ledger(folder, UNITS)
    (folder / "77-0.part").write_text('{"val')
    (folder / "unit-9-00000000000000000000000000000000.json").write_text("{}")
    assert Ledger(folder, UNITS).missing() == [0, 1, 2]


def test_other_units_are_refused(folder):
    Ledger(folder, UNITS)
    with pytest.raises(ResumeError, match="other units of work") as caught:
        Ledger(folder, Units.of([{"number": 9}]))
    assert caught.value.slug == "resume-other"
