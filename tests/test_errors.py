"""Errors: three lines, one tree, and they survive the way between processes."""

import ast
import copy
import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from isoscope import errors
from isoscope.errors import (
    ColumnError,
    ConfigError,
    DocumentError,
    EngineError,
    GateError,
    IsoscopeError,
    LockedError,
    PenaltyError,
    ResumeError,
    RowError,
    RunExistsError,
    SourceError,
    StoreError,
    StreamError,
    UnknownColumnError,
    UnknownNameError,
)

SOURCE = Path(errors.__file__).parent
PENDING = {"api.py"}  # still compare slugs of StoreErrors
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
        "  see:  isoscope help rows-width",
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


@pytest.mark.parametrize(
    ("kind", "parent"),
    [
        (UnknownColumnError, UnknownNameError),
        (ColumnError, SourceError),
        (DocumentError, SourceError),
        (RunExistsError, StoreError),
        (ResumeError, StoreError),
        (LockedError, StoreError),
        (StreamError, PenaltyError),
        (EngineError, IsoscopeError),
    ],
)
def test_what_programs_branch_on_has_a_class_of_its_own(kind, parent):
    assert kind.__base__ is parent


def slug_branches(text):
    """Return the lines that decide something by the slug of an error."""
    lines = []
    for node in ast.walk(ast.parse(text)):
        compared = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            compared.append(node.func.value)  # error.slug.startswith(...)
        if isinstance(node, ast.Match):
            compared.append(node.subject)
        if any(isinstance(each, ast.Attribute) and each.attr == "slug" for each in compared):
            lines.append(node.lineno)
    return lines


@pytest.mark.parametrize(
    "line",
    [
        "if error.slug == 'x': pass",
        "if 'x' != error.slug: pass",
        "found = error.slug in BAD",
        "if not error.slug.startswith('image-'): raise",
        "match error.slug:\n    case 'x': pass",
    ],
)
def test_a_branch_on_a_slug_is_found(line):
    assert slug_branches(line) == [1]


def test_nothing_branches_on_slugs():
    """Slugs are addresses of documentation; only the command line may look at them."""
    found = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in sorted(SOURCE.rglob("*.py"))
        if ".slug" in path.read_text() and (lines := slug_branches(path.read_text()))
    }
    allowed = {"errors.py", *PENDING}
    assert {
        place: lines
        for place, lines in found.items()
        if place not in allowed and not place.startswith("cli/")
    } == {}


def test_hints_speak_the_surface_of_the_caller():
    error = made_with("try --dtype=float32, fewer --workers, --overwrite or --weights=-3,3")
    assert "try --dtype=float32, fewer --workers, --overwrite or --weights=-3,3" in (
        error.with_flags()
    )
    assert 'try dtype="float32", fewer workers, overwrite=True or weights="-3,3"' in str(error)
    assert pickle.loads(pickle.dumps(error)).with_flags() == error.with_flags()


def test_flags_of_other_programs_stay_flags():
    hint = "pip install --upgrade isoscope; see -o; a--b"
    assert hint in str(made_with(hint))


def made_with(hint):
    return ConfigError("no", hint=hint, slug="x")


def test_control_characters_of_names_are_escaped():
    error = IsoscopeError("no run is called '\x1b[2J'", hint="see \x07", slug="x")
    assert (
        str(error) == "no run is called '\\x1b[2J'\n  hint: see \\x07\n  see:  isoscope help x"
    )
