"""Errors: three lines, one tree, and they survive the way between processes."""

import copy
import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from isoscope import errors
from isoscope.errors import GateError, IsoscopeError, RowError, SourceError

KINDS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, IsoscopeError)
]


def made(kind=IsoscopeError):
    return kind(
        "expected vectors of width 768, got width 1024",
        hint="one accumulator serves one site; make another for this width",
        slug="rows-width",
    )


def raising():
    raise made(RowError)


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_the_message_has_a_problem_a_hint_and_an_address(kind):
    assert str(made(kind)).splitlines() == [
        "expected vectors of width 768, got width 1024",
        "  hint: one accumulator serves one site; make another for this width",
        "  see:  docs/errors.md#rows-width",
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_an_error_survives_pickling(kind, protocol):
    back = pickle.loads(pickle.dumps(made(kind), protocol))
    assert type(back) is kind
    assert str(back) == str(made(kind))
    assert (back.problem, back.hint, back.slug) == (
        made().problem,
        made().hint,
        made().slug,
    )


def test_an_error_survives_copying():
    assert str(copy.deepcopy(made(RowError))) == str(made())


def test_an_error_survives_a_process_pool():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool,
        pytest.raises(RowError, match="expected vectors of width 768") as caught,
    ):
        pool.submit(raising).result()
    assert caught.value.slug == "rows-width"


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.__name__)
def test_every_error_ends_the_command_with_2_but_for_gates_and_says_what_it_is(kind):
    assert kind.code == (1 if kind is GateError else 2)
    assert kind.__name__.endswith("Error") and kind.__doc__


def test_a_bad_row_is_a_fault_of_its_source():
    assert issubclass(RowError, SourceError)


def test_the_hint_and_the_slug_must_be_given():
    with pytest.raises(TypeError):
        IsoscopeError("a problem")


def test_it_is_not_taken_for_a_mistake_in_the_program():
    assert not issubclass(IsoscopeError, ValueError | TypeError | OSError)
