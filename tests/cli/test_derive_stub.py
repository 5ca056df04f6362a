"""The type stub is what the specs give, and says what the functions say of themselves."""

import ast
import inspect
from pathlib import Path

import isoscope
from isoscope.cli.derive import stub

STUB = Path(isoscope.__file__).with_name("__init__.pyi")


def test_the_stub_in_the_package_is_up_to_date():
    assert STUB.read_text(encoding="utf-8") == stub(), "run make derive"


def test_it_has_every_public_name_and_every_keyword():
    tree = ast.parse(stub())
    functions = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
    imported = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(isoscope.__all__) <= set(functions) | imported
    for name, function in functions.items():
        arguments = function.args
        names = [each.arg for each in [*arguments.args, *arguments.kwonlyargs]]
        assert names == list(inspect.signature(getattr(isoscope, name)).parameters)
    assert {"survey", "measure", "sweep", "zero"} <= set(functions)


def test_every_name_in_it_exists():
    scope = {}
    exec(compile(stub(), "stub", "exec"), scope)
    returned = scope["survey"].__annotations__["return"]
    assert returned.__origin__.__name__ == "Results"


def test_whole_numbers_are_allowed_where_they_are_names():
    text = stub()
    assert "    layers: str | int | Sequence[str | int] | None = None,\n" in text
    assert "    norms: str | int | Sequence[str | int] = " in text
    assert "    sites: str | Sequence[str] | None = None,\n" in text
