"""Classes of isoscope.dataclass beside those of the standard library: the same, made sooner."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isoscope
from isoscope.dataclass import dataclass

WAYS = [
    {},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"slots": True},
    {"frozen": True, "eq": False},
    {"frozen": True, "slots": True, "eq": False},
    {"eq": False},
    {"frozen": True, "kw_only": True},
    {"frozen": True, "slots": True, "kw_only": True},
]
ways = pytest.mark.parametrize("how", WAYS, ids=lambda how: "-".join(how) or "plain")


def pair_of(make, how):
    """Return a class and one that inherits from it, made by either decorator."""

    @make(**how)
    class Base:
        """A text."""

        name: str
        size: float = 1.5
        parts: list[int] = field(default_factory=list)
        hidden: int = field(default=3, repr=False, compare=False)

        @property
        def twice(self):
            return 2 * self.size

    @make(**how)
    class Derived(Base):
        """Another."""

        size: float = 2.5  # at its old place
        last: tuple[str, ...] = ()
        only: int = field(default=7, kw_only=True)

        def __repr__(self):
            return f"<{self.name}>"

    return Base, Derived


@pytest.fixture
def both(how):
    return pair_of(dataclass, how), pair_of(dataclasses.dataclass, how)


def same(one, other):
    return [(each.name, getattr(one, each.name)) for each in dataclasses.fields(one)] == [
        (each.name, getattr(other, each.name)) for each in dataclasses.fields(other)
    ]


@ways
def test_instances_hold_what_the_library_would_hold(how, both):
    for ours, library in zip(*both, strict=True):
        for keywords in (
            {"name": "a"},
            {"name": "b", "parts": [1]},
            {"name": "c", "size": 9, "hidden": 1},
        ):
            assert same(ours(**keywords), library(**keywords))
        one, other = ours(name="a"), ours(name="b")
        assert one.parts == []
        assert one.parts is not other.parts
        assert one.twice == 2 * one.size
        assert hasattr(one, "__dict__") == hasattr(library(name="a"), "__dict__")
    assert both[0][1](name="a", last=("x",), only=0).only == 0


@ways
def test_they_take_the_same_arguments(how, both):
    for ours, library in zip(*both, strict=True):
        here, there = inspect.signature(ours), inspect.signature(library)
        assert list(here.parameters) == list(there.parameters)
        for name, parameter in here.parameters.items():
            assert parameter.kind == there.parameters[name].kind
            given = parameter.default is not inspect.Parameter.empty
            assert given == (there.parameters[name].default is not inspect.Parameter.empty)
        assert ours.__match_args__ == library.__match_args__
        for wrong in ({}, {"name": 1, "more": 2}):
            with pytest.raises(TypeError):
                ours(**wrong)
        with pytest.raises(TypeError):
            ours(*range(9))


@ways
def test_they_are_compared_hashed_and_shown_alike(how, both):
    for ours, library in zip(*both, strict=True):
        pairs = [({"name": "a"}, {"name": "a", "hidden": 5}), ({"name": "a"}, {"name": "b"})]
        for one, other in pairs:
            equal = ours(**one) == ours(**other)
            assert equal == (library(**one) == library(**other))
        assert ours(name="a") != library(name="a")
        shown = ours(name="a"), library(name="a")
        assert repr(shown[0]) == repr(shown[1])
        assert (ours.__hash__ is None) == (library.__hash__ is None)


@ways
def test_frozen_ones_cannot_be_changed(how, both):
    for kind in (*both[0], *both[1]):
        each = kind(name="a")
        if not how.get("frozen"):
            each.name = "b"
            assert each.name == "b"
            continue
        with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
            each.name = "b"
        with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
            del each.name


@ways
def test_the_library_works_with_them(how, both):
    for ours, library in zip(*both, strict=True):
        one, other = ours(name="a", parts=[1]), library(name="a", parts=[1])
        assert same(dataclasses.replace(one, size=4), dataclasses.replace(other, size=4))
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        assert same(copy.copy(one), other)
        assert same(copy.deepcopy(one), other)


@dataclass(frozen=True, slots=True)
class Sent:
    """What goes to another process."""

    name: str
    rows: Any = None


@dataclass(frozen=True)
class Measured:
    """What keeps what it has worked out, and checks what it is given."""

    size: int
    double: int = field(init=False)

    def __post_init__(self):
        if self.size < 0:
            raise ValueError("negative")
        object.__setattr__(self, "double", 2 * self.size)

    @cached_property
    def square(self):
        return self.size**2


def test_slots_and_frozen_survive_another_process():
    assert pickle.loads(pickle.dumps(Sent("a", [1, 2]))) == Sent("a", [1, 2])


def test_what_a_class_does_after_init_and_lazily_works():
    one = Measured(3)
    assert (one.double, one.square, vars(one)["square"]) == (6, 9, 9)
    with pytest.raises(ValueError, match="negative"):
        Measured(-1)


def test_one_field_is_compared_like_many():
    nan = float("nan")
    ours, library = (
        make(type("One", (), {"__annotations__": {"x": float}}))
        for make in (dataclass, dataclasses.dataclass)
    )
    assert (ours(nan) == ours(nan)) is (library(nan) == library(nan)) is True
    rows = np.zeros(3)
    assert (ours(rows) == ours(rows)) is (library(rows) == library(rows)) is True
    assert ours(1.0) != ours(2.0)


def test_own_methods_are_kept():
    @dataclass(frozen=True)
    class Own:
        x: int

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 5

        def __init__(self):
            object.__setattr__(self, "x", 1)

    assert Own() == 3
    assert hash(Own()) == 5
    assert Own().x == 1


@pytest.mark.parametrize("below", [dataclass, dataclasses.dataclass])
@pytest.mark.parametrize("above", [dataclass, dataclasses.dataclass])
@pytest.mark.parametrize("frozen", [True, False])
def test_classes_of_either_inherit_from_each_other(below, above, frozen):
    """As a measure of a user may, which reads a view of its own."""

    @below(frozen=frozen)
    class Base:
        x: int

    @above(frozen=frozen)
    class Derived(Base):
        y: int = 2

    assert Derived(1) == Derived(1, 2)
    assert repr(dataclasses.replace(Derived(1), x=5)).endswith("Derived(x=5, y=2)")
    if frozen:
        for name in ("x", "y", "z"):
            with pytest.raises(FrozenInstanceError):
                setattr(Derived(1), name, 3)
    with pytest.raises(TypeError, match="cannot inherit"):
        above(frozen=not frozen)(type("Other", (Base,), {"__annotations__": {"y": int}}))


def test_what_holds_itself_is_shown():
    @dataclass
    class Ring:
        next: Any = None

    ring = Ring()
    ring.next = ring
    assert repr(ring).endswith("Ring(next=...)")


def test_the_package_uses_them():
    """But for one class that is ordered, which would gain nothing."""
    source = Path(isoscope.__file__).parent
    library = "from dataclasses import dataclass"
    files = {
        each.relative_to(source).as_posix()
        for each in source.rglob("*.py")
        if any(line.startswith(library) for line in each.read_text().splitlines())
    }
    assert files == {"store/keepers.py"}
