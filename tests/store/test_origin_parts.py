"""Parts of an origin: known fields are typed, others are kept."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from isoscope.store.origin import Identity, Settings, SourceRecord, SweepSettings, TaskRecord

SOURCE = {"name": "a", "fingerprint": "f", "rows": 6, "dtype": "float32", "width": 3}
TASK = {"name": "stars", "metric": "accuracy", "baseline": 0.5}


def test_what_is_not_known_is_not_written():
    assert SourceRecord.from_dict(SOURCE).to_dict() == {**SOURCE, "file": ""}
    assert Settings().to_dict() == {}
    assert Settings(as_published=False).to_dict() == {"as_published": False}


def test_keys_that_are_not_known_are_kept_and_compared():
    one = SourceRecord.from_dict({**SOURCE, "language": "en", "rest": 1})
    assert one.rest == {"language": "en", "rest": 1}
    assert one.to_dict() == {**SOURCE, "file": "", "language": "en", "rest": 1}
    assert one != SourceRecord.from_dict(SOURCE)
    assert SourceRecord.from_dict(one.to_dict()) == one


def test_values_become_plain():
    found = Settings.from_dict({"zeta": np.float32(0.5), "corpus": Path("a"), "sites": ("x",)})
    assert found == Settings(zeta=0.5, rest={"corpus": "a", "sites": ["x"]})


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        (SourceRecord, {**SOURCE, "rows": "many"}),
        (SourceRecord, {"name": "a"}),
        (Settings, {"zeta": "much"}),
        (Settings, {"measures": "isoscore"}),
        (Identity, {"parameters": "many"}),
        (TaskRecord, {"name": "stars"}),
    ],
)
def test_a_wrong_or_missing_field_is_refused(kind, record):
    with pytest.raises(msgspec.ValidationError):
        kind.from_dict(record)


def test_parts_do_not_change():
    with pytest.raises(AttributeError):
        SourceRecord.from_dict(SOURCE).rows = 7


def test_an_identity_is_written_whole():
    record = Identity.from_dict({"model": "m", "sha": "s"}).to_dict()
    assert record["model"] == "m" and record["revision"] is None
    assert set(record) == {*Identity.__struct_fields__} - {"rest", "layers"}  # of surveys


def test_a_task_of_old_has_no_diverged_cells():
    assert TaskRecord.from_dict(TASK).diverged == ()


def test_a_sweep_shows_some_of_its_settings():
    rest = {"penalty": {"name": "istar", "rows": None}, "seeds": [0, 1], "steps": 3, "batch": 4}
    found = msgspec.convert(rest, SweepSettings)
    assert (found.penalty.name, found.seeds, found.steps) == ("istar", (0, 1), 3)
