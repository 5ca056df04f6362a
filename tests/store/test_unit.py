"""Units are named by what they have to do."""

import numpy as np
from isoscope.store.unit import Unit, Units, address


def test_equal_work_has_an_equal_name():
    one = Unit(0, {"documents": [1, 2], "model": "a"})
    other = Unit(7, {"model": "a", "documents": [1, 2]})
    assert one.id == other.id
    assert len(one.id) == 32


def test_other_work_has_another_name():
    assert Unit(0, {"documents": [1]}).id != Unit(0, {"documents": [2]}).id


def test_the_name_of_a_list_depends_on_its_order():
    tasks = [{"documents": [i]} for i in range(3)]
    assert Units.of(tasks).id == Units.of(tasks).id
    assert Units.of(tasks).id != Units.of(tasks[::-1]).id
    assert [unit.number for unit in Units.of(tasks).units] == [0, 1, 2]
    assert len(Units.of(tasks)) == 3


def test_numpy_and_plain_values_have_one_address():
    assert address({"n": np.int64(3)}) == address({"n": 3})


def test_an_address_is_the_same_for_ever():
    # Runs on disk are found by it: a change would make every unfinished run start again.
    assert address({"a": [1, "b", None, 0.5]}) == "b9e511d7d4ecffce5f808aaf10c64b56"
