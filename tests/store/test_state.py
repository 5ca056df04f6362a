"""States written place by place are those written whole, and merge as surveys do."""

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from safetensors import SafetensorError
from safetensors.numpy import load_file

from isoscope.accumulate import ACCUMULATORS, ArrayBlock
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.hashing import named_documents
from isoscope.store.state import (
    StateReader,
    StateWriter,
    join_states,
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
    one, other = (StateReader(tmp_path / name).whole_survey() for name in "ab")
    assert bits(one) == bits(other)


def test_joining_files_is_merging_surveys(tmp_path):
    write_state(tmp_path / "a", survey(1))
    write_state(tmp_path / "b", survey(2, sites=("resid.1", "resid.2")))
    join_states(tmp_path / "a", tmp_path / "b", tmp_path / "ab")
    merged = StateReader(tmp_path / "a").whole_survey()
    merged.merge(StateReader(tmp_path / "b").whole_survey())
    assert bits(StateReader(tmp_path / "ab").whole_survey()) == bits(merged)


def test_sites_come_one_at_a_time(tmp_path):
    write_state(tmp_path / "a", survey(1))
    reader = StateReader(tmp_path / "a")
    assert [sorted(reader.survey_of(site).held) for site in reader.sites] == [
        [(site, "ordinary"), (site, "special")] for site in ("resid.0", "resid.1")
    ]
    assert reader.part([("nowhere", "all")]).held == {}


def test_a_dropped_site_stays_dropped(tmp_path):
    good, bad = survey(1), survey(2)
    bad.drop("resid.1", "NaN in document 7")
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
        out.add(survey(1).to_state())
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_the_first_reason_of_a_site_in_trouble_stays(tmp_path):
    first, second = survey(1), survey(2)
    first.drop("resid.1", "NaN in document 7")
    second.drop("resid.1", "NaN in document 9")
    write_state(tmp_path / "a", first)
    write_state(tmp_path / "b", second)
    join_states(tmp_path / "a", tmp_path / "b", tmp_path / "ab")
    join_states(tmp_path / "a", tmp_path / "b", tmp_path / "over", overlay=True)
    first.merge(second)
    for name in ("ab", "over"):
        found = StateReader(tmp_path / name).trouble
        assert found == first.trouble == {"resid.1": "NaN in document 7"}


def test_writing_looks_at_each_array_once(tmp_path):
    class Big:
        def to_state(self):
            places = [{"site": f"s{i}", "variant": "all", "kinds": {}} for i in range(400)]
            arrays = {f"{i}.K{k}.sum": np.zeros(1) for i in range(400) for k in range(8)}
            return {"places": places, "trouble": {}}, CountedDict(arrays)

    with StateWriter(tmp_path / "a") as out:
        out.add(Big().to_state())
    assert CountedDict.seen == 3200
    assert len(StateReader(tmp_path / "a").places) == 400


class CountedDict(dict):
    """Arrays by name that count how many names were looked at."""

    seen = 0

    def items(self):
        for pair in super().items():
            CountedDict.seen += 1
            yield pair


class Single:
    """A survey of one array."""

    def __init__(self, array):
        self.array = array

    def to_state(self):
        places = [{"site": "s", "variant": "all", "kinds": {}}]
        return {"places": places, "trouble": {}}, {"0.K.x": self.array, "0.K.y": self.array.T}


ARRAY_KINDS = st.sampled_from([np.float64, np.float32, np.int64, np.uint64, np.uint8])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    array=ARRAY_KINDS.flatmap(lambda kind: arrays(kind, array_shapes(min_dims=0, min_side=0)))
)
def test_the_library_of_the_format_reads_arrays_bit_by_bit(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("state") / "s"
    with StateWriter(path) as out:
        out.add(Single(array).to_state())
    back = load_file(path)
    for name, expected in (("0.K.x", array), ("0.K.y", array.T)):
        assert back[name].dtype == expected.dtype
        assert back[name].tobytes() == expected.tobytes()
        assert back[name].shape == expected.shape


def test_what_comes_back_can_be_added_to(tmp_path, write_as_library):
    write_as_library(tmp_path / "s", *survey(1).to_state())
    back = StateReader(tmp_path / "s").whole_survey()
    back.merge(survey(2))
    merged = Survey.from_state(*survey(1).to_state())
    merged.merge(survey(2))
    assert bits(back) == bits(merged)


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
    with pytest.raises((SafetensorError, KeyError, OSError)):
        StateReader(tmp_path / "s")


def test_a_description_that_is_no_dictionary_is_refused(tmp_path, write_as_library):
    write_as_library(tmp_path / "s", [1], {"x": np.ones(1)})
    with pytest.raises(msgspec.ValidationError, match="Expected `object`, got `array`"):
        StateReader(tmp_path / "s")
