"""The habits of the house: modules have tests, names say something, files stay readable."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "isoscope"
TESTS = ROOT / "tests"
BANNED = {"utils", "common", "misc", "helpers", "core", "manager", "handler", "data", "info"}
LONGEST = 600


def public_names(text):
    """Return the names a module defines itself and does not hide behind an underscore."""
    names = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return [name for name in names if not name.startswith("_")]


def untested(source, tests):
    """Return the modules with a public name that no test of their folder is about.

    A test file of the same name is about it, and so is one that imports it.
    """
    missing, texts = [], {}
    for path in sorted(tests.rglob("*.py")):
        folder = path.relative_to(tests).parts[0]
        texts[folder] = texts.get(folder, "") + path.read_text()
    for path in sorted(source.rglob("*.py")):
        if path.stem in {"__init__", "__main__"} or not public_names(path.read_text()):
            continue
        inside = path.relative_to(source)
        mirror = tests / inside.with_name(f"test_{path.name}")
        name = ".".join((source.name, *inside.with_suffix("").parts))
        imported = len(inside.parts) > 1 and name in texts.get(inside.parts[0], "")
        if not mirror.exists() and not imported:
            missing.append(str(inside))
    return missing


def drawers(root):
    """Return the files and folders whose name says nothing about what is inside."""
    paths = [p for p in root.rglob("*") if p.is_dir() or p.suffix == ".py"]
    shown = (p for p in paths if "__pycache__" not in p.parts)
    return [str(p.relative_to(root)) for p in shown if BANNED & set(p.stem.split("_"))]


PYTHON = [
    p
    for folder in ("src", "tests", "bench")
    for p in sorted((ROOT / folder).rglob("*.py"))
    if "runs" not in p.relative_to(ROOT).parts  # what benchmarks leave behind
]


def test_every_module_has_a_test_file():
    assert untested(SOURCE, TESTS) == []


def test_no_file_is_a_drawer():
    assert drawers(SOURCE) + drawers(TESTS) == []


def test_every_file_says_what_is_inside():
    silent = [
        str(path.relative_to(ROOT))
        for path in PYTHON
        if (path.read_text().strip() or path.is_relative_to(SOURCE))
        and not re.match(r'"""[^\s"]', path.read_text())  # nearly all; the others are parsed
        and not ast.get_docstring(ast.parse(path.read_text()))
    ]
    assert silent == []


def test_no_file_is_endless():
    lines = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in PYTHON}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def test_an_untested_module_and_a_drawer_are_caught(tmp_path):
    source, tests = tmp_path / "package", tmp_path / "tests"
    for folder in (source / "a", tests / "a"):
        folder.mkdir(parents=True)
    (source / "a" / "b.py").write_text("def c(): ...")
    (source / "a" / "quiet.py").write_text("_c = 1")
    (source / "a" / "row_utils.py").write_text("")
    assert untested(source, tests) == ["a/b.py"]
    assert drawers(source) == ["a/row_utils.py"]
    (tests / "a" / "test_idea.py").write_text("from package.a.b import c")
    assert untested(source, tests) == []
    (tests / "a" / "test_idea.py").rename(tests / "a" / "test_b.py").write_text("")
    assert untested(source, tests) == []
