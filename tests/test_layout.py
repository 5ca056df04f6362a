"""The habits of the house: tests mirror modules, names say something, files stay small."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "isoscope"
TESTS = ROOT / "tests"
BANNED = {"utils", "common", "misc", "helpers", "core", "manager", "handler", "data", "info"}
LONGEST = 400
HOUSE = {"test_architecture.py", "test_layout.py", "test_docs.py"}


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
    """Return the modules with a public name that have no test file of their own."""
    missing = []
    for path in sorted(source.rglob("*.py")):
        if path.stem in {"__init__", "__main__"} or not public_names(path.read_text()):
            continue
        mirror = tests / path.relative_to(source).with_name(f"test_{path.name}")
        if not mirror.exists():
            missing.append(str(mirror.relative_to(tests)))
    return missing


def orphans(source, tests):
    """Return the test files that name no module; only folders that both sides have count."""
    lost = []
    for path in sorted(tests.rglob("test_*.py")):
        folder = path.parent.relative_to(tests)
        if (path.parent == tests and path.name in HOUSE) or not (source / folder).is_dir():
            continue
        stem = path.stem.removeprefix("test_")
        parts = stem.split("_")
        starts = {"_".join(parts[: i + 1]) for i in range(len(parts))}
        modules = {module.stem for module in (source / folder).glob("*.py")}
        # tests/a/test_moments_far_from_zero.py may stand beside tests/a/test_moments.py
        if not starts & modules:
            lost.append(str(path.relative_to(tests)))
    return lost


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
every_file = pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))


def test_every_module_has_a_test_file():
    assert untested(SOURCE, TESTS) == []


def test_every_test_file_has_a_module():
    assert orphans(SOURCE, TESTS) == []


def test_no_file_is_a_drawer():
    assert drawers(SOURCE) + drawers(TESTS) == []


@every_file
def test_it_says_what_is_inside(path):
    text = path.read_text()
    if text.strip() or path.is_relative_to(SOURCE):
        assert ast.get_docstring(ast.parse(text)), f"{path.name} has no docstring"


@every_file
def test_it_fits_on_a_desk(path):
    lines = len(path.read_text().splitlines())
    assert lines <= LONGEST, f"{path.name} has {lines} lines; split it"


def test_a_missing_mirror_an_orphan_and_a_drawer_are_caught(tmp_path):
    source, tests = tmp_path / "src", tmp_path / "tests"
    for folder in (source / "a", tests / "a", tests / "laws"):
        folder.mkdir(parents=True)
    (source / "a" / "b.py").write_text("def c(): ...")
    (source / "a" / "quiet.py").write_text("_c = 1")
    (source / "a" / "row_utils.py").write_text("")
    (tests / "a" / "test_bee.py").write_text("")
    (tests / "laws" / "test_any_law.py").write_text("")
    assert untested(source, tests) == ["a/test_b.py"]
    assert orphans(source, tests) == ["a/test_bee.py"]
    assert drawers(source) == ["a/row_utils.py"]
    (tests / "a" / "test_b.py").write_text("")
    (tests / "a" / "test_bee.py").rename(tests / "a" / "test_b_far_away.py")
    assert untested(source, tests) == orphans(source, tests) == []
