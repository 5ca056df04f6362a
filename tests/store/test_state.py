"""States written place by place are those written whole, and merge as surveys do."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from isoscope.accumulate import ACCUMULATORS, ArrayBlock
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.hashing import named_documents
from isoscope.store.state import (
    StateReader,
    StateWriter,
    join_states,
    overlay_states,
    read_state,
    read_trouble,
    write_state,
)

KINDS = tuple(kind for kind in ACCUMULATORS if kind not in SECOND_PASS)


def survey(seed, sites=("resid.0", "resid.1")):
    rng = np.random.default_rng(seed)
    found = Survey()
    for site in sites:
        for row_class in ("ordinary", "special"):
            names = np.repeat([f"{seed}-{row_class}-{i}" for i in range(6)], 4)
            rows = rng.normal(size=(24, 5)).astype(np.float32)
            positions = np.tile(np.arange(4, dtype=np.uint64), 6)
            block = ArrayBlock(rows, named_documents(names), positions)
            found.update((site, row_class), KINDS, block)
    return found


def bits(survey):
    meta, arrays = survey.to_state()
    places = [(place["site"], place["variant"]) for place in meta["places"]]
    return places, {name: array.tobytes() for name, array in arrays.items()}


def test_a_streamed_file_is_the_file_written_whole(tmp_path, write_as_library):
    write_state(tmp_path / "a", survey(1))
    write_as_library(tmp_path / "b", *survey(1).to_state())
    one, other = (Survey.from_state(*read_state(tmp_path / name)) for name in "ab")
    assert bits(one) == bits(other)


def test_joining_files_is_merging_surveys(tmp_path):
    write_state(tmp_path / "a", survey(1))
    write_state(tmp_path / "b", survey(2, sites=("resid.1", "resid.2")))
    join_states(tmp_path / "a", tmp_path / "b", tmp_path / "ab")
    merged = Survey.from_state(*read_state(tmp_path / "a"))
    merged.merge(Survey.from_state(*read_state(tmp_path / "b")))
    assert bits(Survey.from_state(*read_state(tmp_path / "ab"))) == bits(merged)


def test_sites_come_one_at_a_time(tmp_path):
    write_state(tmp_path / "a", survey(1))
    reader = StateReader(tmp_path / "a")
    assert [sorted(reader.survey_of(site).held) for site in reader.sites] == [
        [(site, "ordinary"), (site, "special")] for site in ("resid.0", "resid.1")
    ]
    assert reader.survey([("nowhere", "all")]).held == {}


def test_a_spoilt_site_stays_spoilt(tmp_path):
    good, bad = survey(1), survey(2)
    bad.spoil("resid.1", "NaN in document 7")
    write_state(tmp_path / "good", good)
    write_state(tmp_path / "bad", bad)
    for left, right in (("good", "bad"), ("bad", "good")):
        out = tmp_path / f"{left}-{right}"
        join_states(tmp_path / left, tmp_path / right, out)
        reader = StateReader(out)
        assert {site for site, _ in reader.places} == {"resid.0"}
        assert reader.trouble == {"resid.1": "NaN in document 7"}


def test_nothing_is_left_behind_by_a_failure(tmp_path):
    with pytest.raises(KeyError), StateWriter(tmp_path / "a") as out:
        out.add(survey(1))
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_the_first_reason_of_a_site_in_trouble_stays(tmp_path):
    first, second = survey(1), survey(2)
    first.spoil("resid.1", "NaN in document 7")
    second.spoil("resid.1", "NaN in document 9")
    write_state(tmp_path / "a", first)
    write_state(tmp_path / "b", second)
    join_states(tmp_path / "a", tmp_path / "b", tmp_path / "ab")
    overlay_states(tmp_path / "a", tmp_path / "b", tmp_path / "over")
    first.merge(second)
    for name in ("ab", "over"):
        assert StateReader(tmp_path / name).trouble == {"resid.1": "NaN in document 7"}
        assert read_trouble(tmp_path / name) == first.trouble


def test_writing_looks_at_each_array_once(tmp_path):
    class Big:
        def to_state(self):
            places = [{"site": f"s{i}", "variant": "all", "kinds": {}} for i in range(400)]
            arrays = {f"{i}.K{k}.sum": np.zeros(1) for i in range(400) for k in range(8)}
            return {"places": places, "trouble": {}}, CountedDict(arrays)

    with StateWriter(tmp_path / "a") as out:
        out.add(Big())
    assert CountedDict.seen == 3200
    assert len(StateReader(tmp_path / "a").places) == 400


class CountedDict(dict):
    """Arrays by name that count how many names were looked at."""

    seen = 0

    def items(self):
        for pair in super().items():
            CountedDict.seen += 1
            yield pair


ARRAY_KINDS = st.sampled_from(
    [np.float64, np.float32, np.int64, np.uint64, np.int32, np.uint8, bool]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    array=ARRAY_KINDS.flatmap(lambda kind: arrays(kind, array_shapes(min_dims=0, min_side=0)))
)
def test_an_array_comes_back_bit_by_bit(tmp_path_factory, write_as_library, array):
    path = tmp_path_factory.mktemp("state") / "s"
    write_as_library(path, {"a": 1}, {"x": array, "turned": array.T})
    meta, back = read_state(path)
    assert meta == {"a": 1}
    for name, expected in (("x", array), ("turned", array.T)):
        assert back[name].dtype == expected.dtype
        assert back[name].tobytes() == expected.tobytes()
        assert back[name].shape == expected.shape


def test_what_comes_back_can_be_added_to(tmp_path, box, write_as_library):
    write_as_library(tmp_path / "s", *box().to_state())
    _, arrays = read_state(tmp_path / "s")
    for array in arrays.values():
        array += 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 64,  # a header of 2**64 bytes
        (2**62).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{}",  # whole, but not a survey's
    ],
)
def test_what_is_no_state_is_refused(tmp_path, content):
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        read_state(tmp_path / "s")


def test_a_description_that_is_no_dictionary_is_refused(tmp_path, write_as_library):
    write_as_library(tmp_path / "s", [1], {"x": np.ones(1)})
    with pytest.raises(ValueError, match="expected a survey's description, got list"):
        read_state(tmp_path / "s")
