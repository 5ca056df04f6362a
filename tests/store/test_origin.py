"""Which runs add up."""

import msgspec
import pytest
from msgspec.structs import replace

from isoscope.errors import MergeError
from isoscope.store import SCHEMA, Origin, mergeable, new_origin
from isoscope.store.origin import Identity, versions


def test_sources_are_united_in_order(origin, make_source):
    a, b, c = (make_source(name, f"f-{name}") for name in "abc")
    united = mergeable([origin(a, b), origin(c)])
    assert united == origin(a, b, c)
    assert united.schema == SCHEMA
    assert united.kind == "vectors"


def test_one_origin_is_its_own_union(origin):
    assert mergeable([origin()]) == origin()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"seed": 1}, "different seed: 0 and 1"),
        ({"settings": {"zeta": 0.3}}, r"different zeta: 0\.2 and 0\.3"),
        ({"settings": {"zeta": 0.2, "new": 1}}, "different new: None and 1"),
    ],
)
def test_other_settings_do_not_add_up(origin, make_source, change, problem):
    with pytest.raises(MergeError, match=problem) as caught:
        mergeable([origin(), origin(make_source("b", "f-b"), **change)])
    assert caught.value.slug == "merge-origin"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"width": 4}, "different width: 3 and 4"),
        ({"dtype": "float64"}, "different dtype: 'float32' and 'float64'"),
    ],
)
def test_rows_of_another_width_or_type_do_not_add_up(origin, make_source, change, problem):
    with pytest.raises(MergeError, match=problem):
        mergeable([origin(), origin(make_source("b", "f-b", **change))])


def test_another_kind_or_a_key_of_a_later_kind_does_not_add_up(origin, make_source):
    other = origin(make_source("b", "f-b"))
    with pytest.raises(MergeError, match="different kind: 'vectors' and 'model'"):
        mergeable([origin(), replace(other, kind="model")])
    with pytest.raises(MergeError, match="different sha: None and 'abc'"):
        mergeable([origin(), replace(other, rest={"sha": "abc"})])


def test_another_schema_does_not_add_up(origin, make_source):
    with pytest.raises(MergeError, match="schema 1 with one of 2") as caught:
        mergeable([origin(), replace(origin(make_source("b", "f-b")), schema=2)])
    assert caught.value.slug == "merge-schema"


def test_the_same_rows_are_not_counted_twice(origin, make_source):
    with pytest.raises(MergeError, match="they hold the same rows") as caught:
        mergeable([origin(), origin(make_source("b", "f-a"))])
    assert caught.value.slug == "merge-same-source"


def test_the_same_rows_are_found_among_many(origin, make_source):
    a, b, c = (make_source(name, f"f-{name}") for name in "abc")
    with pytest.raises(MergeError, match="they hold the same rows"):
        mergeable([origin(a), origin(b), origin(c, a)])


def test_a_name_is_given_once(origin, make_source):
    with pytest.raises(MergeError, match="both called 'a'") as caught:
        mergeable([origin(), origin(make_source("a", "f-other"))])
    assert caught.value.slug == "merge-same-name"


def test_an_origin_of_the_wrong_shape_is_a_bug(make_source):
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        new_origin(sources=[make_source(rows="many")], settings={}, seed=0)


def test_versions_are_reported():
    assert set(versions()) == {"isoscope", "numpy", "python"}


MODEL = {"model": "tiny", "sha": "abc", "versions": {"torch": "2"}}
TASK = {"name": "stars", "metric": "accuracy", "baseline": 0.5}


def test_runs_of_another_model_do_not_add_up(make_source):
    def of(name, **changes):
        return new_origin(
            sources=[make_source(name, f"f-{name}")],
            settings={},
            seed=0,
            model={**MODEL, **changes},
        )

    assert mergeable([of("a"), of("b")]).model == Identity.from_dict(MODEL)
    known = of("b", layers={"resid": 3})  # a run of an earlier version does not say
    assert mergeable([known, of("a")]).model.layers == {"resid": 3}
    assert "layers" not in of("a").to_dict()["model"]
    with pytest.raises(MergeError, match="different sha of the model: 'abc' and 'x'"):
        mergeable([of("a"), of("b", sha="x")])
    with pytest.raises(MergeError, match="different model: 'tiny' and 'other'"):
        mergeable([of("a"), of("b", model="other")])
    with pytest.raises(MergeError, match="different quantised of the model: None and True"):
        mergeable([of("a"), of("b", quantised=True)])


def test_a_setting_may_have_the_name_of_something_else(make_source):
    def of(name, seed):
        sources = [make_source(name, f"f-{name}")]
        return new_origin(sources=sources, settings={"seed": 5}, seed=seed)

    with pytest.raises(MergeError, match="different seed: 0 and 1"):
        mergeable([of("a", 0), of("b", 1)])


def test_an_origin_is_what_stands_in_the_file(make_source):
    given = {"sources": [make_source(documents=3)], "settings": {"zeta": 0.2, "length": None}}
    whole = new_origin(**given, seed=1, kind="sweep", model=MODEL, task=TASK)
    record = whole.to_dict()
    assert record["settings"] == given["settings"]
    assert record["task"]["metric"] == "accuracy"
    assert Origin.from_dict(record) == whole
    assert Origin.from_dict({**record, "new": 1}).to_dict() == {**record, "new": 1}


def test_a_task_that_is_not_whole_leaves_the_rest_readable(make_source):
    whole = new_origin(sources=[make_source()], settings={}, seed=1, kind="sweep", task=TASK)
    for task in ({"name": "stars"}, 3, [TASK]):
        found = Origin.from_dict({**whole.to_dict(), "task": task})
        assert (found.task, found.rest) == (None, {"task": task})
        assert found.to_dict()["task"] == task
        with pytest.raises(msgspec.ValidationError, match="no whole task"):
            found.sweep()


def test_a_sweep_tells_its_task_and_settings(make_source):
    settings = {"penalty": {"name": "istar"}, "seeds": [0, 1], "steps": 8}
    whole = new_origin(sources=[make_source()], settings=settings, seed=1, task=TASK)
    task, swept = whole.sweep()
    assert (task.metric, swept.penalty.name, swept.seeds) == ("accuracy", "istar", (0, 1))
