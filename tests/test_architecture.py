"""The arrows between folders, and who may load torch: the table of the design, executed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[1] / "src" / "isoscope"

# Modules beside the folders that every folder may import.
NOUNS = {"types", "errors", "registry", "site"}
BELOW_STUDY = {"source", "capture", "accumulate", "measures", "store", "engine"}
MAY_IMPORT = {
    "source": set(),
    "capture": {"accumulate"},
    "accumulate": set(),
    "measures": {"accumulate"},
    "causes": {"accumulate", "measures"},
    "store": {"accumulate"},
    "engine": {"accumulate", "store"},
    "study": BELOW_STUDY | {"display"},
    "comparison": {"accumulate", "measures", "store", "study", "display"},
    "training": {"capture", "study"},
    "lab": BELOW_STUDY | {"causes", "study", "control", "training", "display"},
    "claims": {"measures", "lab", "store"},
    "transform": {"accumulate"},
    "control": {"accumulate", "measures", "capture", "study"},
    "collection": {"accumulate", "measures", "transform"},
    "display": set(),
    "exhibit": {
        "accumulate",
        "measures",
        "causes",
        "store",
        "study",
        "comparison",
        "lab",
        "display",
    },
}
# The command line, the public functions, and the package itself may import every folder.
EVERYTHING = {"cli", "api", "__init__", "__main__"}
TORCH_AT_IMPORT = {"capture", "lab", "control", "training"}
TORCH_IN_FUNCTIONS = TORCH_AT_IMPORT | EVERYTHING | {"engine", "claims", "study"}
# What neither `import isoscope` nor the command line may load before it is needed.
HEAVY = {"torch", "transformers", "pandas", "polars", "scipy", "sklearn", "altair", "ray"}


def imports(text):
    """Yield (dotted name, whether it is loaded when the module is) for every import."""

    def visit(node, at_import):
        if isinstance(node, ast.Import):
            yield from ((alias.name, at_import) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            dots = "." * node.level
            for alias in node.names:
                yield f"{dots}{node.module or ''}.{alias.name}", at_import
        elif isinstance(node, ast.Call) and _is_import_call(node):
            yield node.args[0].value, at_import
        lazy = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        lazy = lazy or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, at_import and not lazy)

    return list(visit(ast.parse(text), True))


def _is_import_call(node):
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    first = node.args[0] if node.args else None
    is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return name in {"import_module", "__import__"} and is_text


def complaints(place, text):
    """Return what is wrong with the imports of a module; `place` is its folder or stem."""
    found = []
    for name, at_import in imports(text):
        top, _, rest = name.partition(".")
        target = rest.partition(".")[0]
        if not top:
            found.append(f"{place} must write out the import {name}")
        elif top == "torch":
            if place not in TORCH_IN_FUNCTIONS:
                found.append(f"{place} may not import torch")
            elif at_import and place not in TORCH_AT_IMPORT:
                found.append(f"{place} may import torch inside functions only")
        elif top == "isoscope" and place not in EVERYTHING:
            allowed = NOUNS if place in NOUNS else MAY_IMPORT[place] | NOUNS | {place}
            if target not in allowed:
                found.append(f"{place} may not import {target or 'isoscope itself'}")
    return found


def place(path):
    """Return the folder of a module, or its stem when it stands beside the folders."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] if len(parts) > 1 else path.stem


def loaded(code, *arguments, path=SOURCE.parent):
    """Return which heavy packages a fresh interpreter has loaded after running the code."""
    report = f"\nimport sys; print('heavy', *sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code + report, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


MODULES = sorted(SOURCE.rglob("*.py"))


def test_imports_follow_the_arrows():
    offenders = [
        f"{path.relative_to(SOURCE)}: {each}"
        for path in MODULES
        for each in complaints(place(path), path.read_text())
    ]
    assert offenders == []


def test_every_folder_has_its_row_in_the_table():
    folders = {p.relative_to(SOURCE).parts[0] for p in MODULES if p.parent != SOURCE}
    assert folders - set(MAY_IMPORT) - EVERYTHING == set()
    beside = {p.stem for p in MODULES if p.parent == SOURCE}
    assert beside - NOUNS - EVERYTHING == set()


def feeders():
    """Return the modules that make blocks of rows, or a listener, for accumulators."""
    found = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if name in {"ArrayBlock", "Listener"} and place(path) != "accumulate":
                found.setdefault(str(path.relative_to(SOURCE)), set()).add(name)
    return found


def test_two_places_feed_sums_rows_and_models():
    of_samples = {
        "study/reading.py",
        "measures/view/partition.py",
    }  # rows that are kept already
    assert feeders().keys() - of_samples == {"study/lanes.py", "study/passes.py"}


def test_the_arrows_have_no_circle():
    done = set()
    while ready := {f for f in MAY_IMPORT.keys() - done if MAY_IMPORT[f] <= done}:
        done |= ready
    assert done == set(MAY_IMPORT)


@pytest.mark.parametrize("code", ["import isoscope", "import isoscope.cli.main"])
def test_importing_loads_nothing_heavy(code):
    assert loaded(code) == set()


def test_measuring_a_file_never_loads_torch(tmp_path):
    np.save(tmp_path / "v.npy", np.random.default_rng(3).normal(size=(200, 8)))
    code = (
        "import sys\nfrom isoscope.cli.main import main\n"
        "sys.argv = ['isoscope', 'measure', sys.argv[1], '--json']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
    )
    assert "torch" not in loaded(code, tmp_path / "v.npy")


@pytest.mark.parametrize(
    ("folder", "text", "match"),
    [
        ("measures", "import torch", "measures may not import torch"),
        ("measures", "def f():\n    from torch import nn", "measures may not import torch"),
        ("source", "import importlib\nimportlib.import_module('torch')", "source may not"),
        ("engine", "import torch.distributed", "inside functions only"),
        ("api", "import torch", "inside functions only"),
        ("accumulate", "from isoscope.measures import MEASURES", "may not import measures"),
        ("accumulate", "from isoscope import measures", "may not import measures"),
        ("display", "import isoscope.study.lanes", "may not import study"),
        ("display", "import isoscope", "may not import isoscope itself"),
        ("types", "from isoscope.accumulate import Moments", "may not import accumulate"),
        ("store", "from .schema import SCHEMA", "must write out the import .schema.SCHEMA"),
    ],
)
def test_a_planted_arrow_is_caught(folder, text, match):
    (complaint,) = complaints(folder, text)
    assert match in complaint


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("capture", "import torch"),
        ("engine", "def f():\n    import torch"),
        ("claims", "if TYPE_CHECKING:\n    import torch"),
        ("cli", "from isoscope.lab.drift import drift"),
        ("measures", "from isoscope.measures.base import measure\nimport torchless"),
        ("display", "from isoscope.types import Reading"),
        ("registry", "from isoscope.errors import UnknownNameError"),
    ],
)
def test_a_lawful_import_is_not_caught(folder, text):
    assert complaints(folder, text) == []


def test_a_planted_torch_is_seen_in_the_fresh_interpreter(tmp_path):
    (tmp_path / "torch.py").write_text("")
    assert loaded("import torch", path=tmp_path) == {"torch"}
