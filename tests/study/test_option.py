"""An option is described once: its type, default, bounds and help line."""

from pathlib import Path
from typing import Annotated, Literal

import pytest

from isoscope.errors import ConfigError, UnknownNameError
from isoscope.study.option import Part, about, build, leaf, named_options, options_of


class Inner(Part, frozen=True, kw_only=True):
    depth: Annotated[int, about("How deep.", "N", least=1, most=9)] = 3
    names: Annotated[
        tuple[str, ...] | None, about("Names.", "A,B", commas=True, numbers=True)
    ] = None


class Outer(Part, frozen=True, kw_only=True):
    place: Annotated[str, about("Where.", "PLACE", argument=True, path=True)]
    inner: Inner = Inner(depth=5)
    share: Annotated[float, about("A share.", "X", least=0.0, most=1.0)] = 0.5
    count: Annotated[int | None, about("How many.", "N", least=2)] = None
    mode: Annotated[Literal["mean", "last"] | None, about("How.", "MODE")] = None
    weights: Annotated[tuple[float, ...], about("Weights.", "W,W", commas=True)] = (0.0,)
    many: Annotated[tuple[str, ...], about("A thing; repeat it.", flag="-m/--thing")] = ()
    folders: Annotated[tuple[str, ...], about("Folders.", commas=True, path=True)] = ()
    seed: Annotated[int, about("Seed.", "N", least=0, most=2**63 - 1)] = 0


OPTIONS = named_options(Outer)


def test_parts_are_flattened_and_their_defaults_are_those_of_the_spec():
    assert list(OPTIONS) == [
        "place", "depth", "names", "share", "count", "mode", "weights", "many", "folders",
        "seed",
    ]  # fmt: skip
    assert OPTIONS["depth"].default == 5
    assert OPTIONS["depth"].path == ("inner", "depth")
    assert OPTIONS["place"].required and not OPTIONS["share"].required


def test_flags_follow_from_names_unless_they_are_given():
    assert OPTIONS["many"].flag == "thing"
    assert OPTIONS["share"].flag == "share"
    assert OPTIONS["mode"].words == ("mean", "last")
    assert OPTIONS["weights"].many and OPTIONS["weights"].plain is float


@pytest.mark.parametrize(
    ("name", "given", "found"),
    [
        ("names", "a, b,", ("a", "b")),
        ("names", ["a"], ("a",)),
        ("names", 3, ("3",)),
        ("names", None, None),
        ("weights", "1,-2.5", (1.0, -2.5)),
        ("weights", [1, 2], (1.0, 2.0)),
        ("weights", 3, (3.0,)),
        ("many", "a,b", ("a,b",)),
        ("place", Path("a"), "a"),
        ("folders", Path("a,b"), ("a,b",)),
        ("folders", (Path("a"), "b"), ("a", "b")),
        ("share", 1, 1.0),
        ("count", None, None),
        ("count", 2, 2),
        ("mode", "last", "last"),
    ],
)
def test_values_take_the_type_of_the_option(name, given, found):
    assert OPTIONS[name].check(given) == found


@pytest.mark.parametrize(
    ("name", "value", "problem", "slug"),
    [
        ("depth", 0, "at least 1 and at most 9 as depth, got 0", "number-range"),
        ("depth", 10, "at most 9 as depth, got 10", "number-range"),
        ("depth", 2.5, "at least 1 as depth, got 2.5", "number-too-small"),
        ("depth", True, "at least 1 as depth, got True", "number-too-small"),
        ("depth", "3", "at least 1 as depth, got '3'", "number-too-small"),
        ("count", 1, "at least 2 as count, got 1", "number-too-small"),
        ("share", -0.1, "at least 0 and at most 1 as share", "number-range"),
        ("share", float("nan"), "as share, got nan", "number-range"),
        ("weights", "1,x", "expected numbers as weights", "option-kind"),
        ("many", {"a": 1}, "expected text as thing", "option-kind"),
        ("place", 3, "expected text as place, got 3", "option-kind"),
        ("seed", -1, "from 0 to 2^63 - 1 as seed, got -1", "seed"),
        ("seed", 2**63, "from 0 to 2^63 - 1 as seed", "seed"),
        ("seed", 1.5, "from 0 to 2^63 - 1 as seed", "seed"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(name, value, problem, slug):
    with pytest.raises(ConfigError) as caught:
        OPTIONS[name].check(value)
    assert problem in caught.value.problem
    assert caught.value.slug == slug


def test_a_misspelt_word_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="no mode is called 'laast'") as caught:
        OPTIONS["mode"].check("laast")
    assert "did you mean 'last'?" in caught.value.hint


def test_options_of_a_class_come_before_those_it_shares():
    class More(Inner, frozen=True, kw_only=True):
        own: Annotated[int, about("Of this class alone.")] = 1

    assert next(iter(named_options(More))) == "own"
    assert set(named_options(More)) == {"own", *named_options(Inner)}


def test_a_spec_is_built_from_the_names_of_its_leaves():
    found = build(Outer, {"place": "x", "depth": 2, "share": 0.1})
    assert found == Outer(place="x", inner=Inner(depth=2), share=0.1)
    assert build(Outer, {"place": "x"}).inner.depth == 5
    assert leaf(found, ("inner", "depth")) == 2


def test_a_field_that_is_not_described_is_a_bug():
    class Silent(Part, frozen=True, kw_only=True):
        depth: int = 3

    with pytest.raises(TypeError, match=r"Silent\.depth is not described"):
        list(options_of(Silent))


def test_a_name_that_stands_twice_is_a_bug():
    class Twice(Part, frozen=True, kw_only=True):
        inner: Inner = Inner()
        depth: Annotated[int, about("How deep.")] = 3

    with pytest.raises(TypeError, match="two options called 'depth'"):
        named_options(Twice)


def test_a_misspelt_keyword_of_a_description_is_a_bug():
    with pytest.raises(TypeError, match="lest"):
        about("How many.", "N", lest=1)


def test_types_can_be_joined_to_what_python_accepts():
    assert OPTIONS["place"].type | int == str | int
    assert OPTIONS["mode"].type | int == Literal["mean", "last"] | None | int
