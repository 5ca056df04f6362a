"""The arrows between folders, and who may load torch: the table of the design, executed."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parents[1] / "src" / "isoscope"

# The table of the design. Two arrows more than it has: what returns results makes them with
# the containers of display (study, comparison), and what shows or pairs runs reads summaries
# of accumulate off them (comparison, exhibit).
# Modules beside the folders that every folder may import.
NOUNS = {
    "dataclass",
    "types",
    "errors",
    "escape",
    "registry",
    "site",
    "hashing",
    "memory",
    "blas",
}
BELOW_STUDY = {"source", "capture", "accumulate", "measures", "store", "engine"}
MAY_IMPORT = {
    "source": set(),
    "capture": {"accumulate"},
    "accumulate": set(),
    "measures": {"accumulate"},
    "causes": {"accumulate", "measures"},
    "store": {"accumulate"},
    "engine": {"store"},
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
        "display",
    },
}
# The command line, the public functions, and the package itself may import every folder, and so
# may what registers the nursery's model with transformers when the package is imported.
EVERYTHING = {"cli", "api", "auto_classes", "__init__", "__main__"}
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


# Public functions and commands call what computes, and compute nothing themselves.
COMPUTES = {"numpy", "scipy", "torch", "math", "statistics", "random"}
INSIDE = {"accumulate", "measures", "causes", "capture", "source"}  # what commands never touch
LINES = {"api": 10, "cli": 28}  # of a function, without its signature and docstring
TIMES = {"tick", "words", "_words"}  # of the progress bar: rows per second and time left


def computing(place, text):
    """Return where public functions or commands compute; `place` is api or cli."""
    found = []
    for name, _ in imports(text):
        top, _, rest = name.partition(".")
        if top in COMPUTES or (top == "isoscope" and rest.partition(".")[0] in INSIDE):
            found.append(f"imports {name}")
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef) and function.name not in TIMES:
            found += [f"{function.name} {each}" for each in _work(place, function)]
    return found


def _work(place, function):
    """Yield what a function does that belongs below it."""
    has_docstring = ast.get_docstring(function) is not None and len(function.body) > 1
    lines = function.end_lineno - function.body[has_docstring].lineno + 1
    if lines > LINES[place]:
        yield f"has {lines} lines"
    in_text = {id(part) for text in _of(function, ast.JoinedStr) for part in ast.walk(text)}
    for node in _of(function, ast.BinOp):  # a | b is a type, or a union of dictionaries
        words = isinstance(node.op, ast.BitOr | ast.Add) and place == "cli"
        if not (words or isinstance(node.op, ast.BitOr) or id(node) in in_text):
            yield f"computes {ast.unparse(node)}"
    if place == "api":
        yield from (
            "has a loop" for _ in _of(function, ast.For | ast.While | ast.comprehension)
        )


def _of(node, kind):
    return [each for each in ast.walk(node) if isinstance(each, kind)]


def test_public_functions_and_commands_compute_nothing():
    offenders = [
        f"{path.relative_to(SOURCE)}: {each}"
        for path in MODULES
        if place(path) in LINES
        for each in computing(place(path), path.read_text())
    ]
    assert offenders == []


@pytest.mark.parametrize(
    ("folder", "text", "match"),
    [
        ("api", "import numpy as np", "imports numpy"),
        ("api", "def f(runs):\n    for run in runs:\n        run.read()", "has a loop"),
        ("api", "def f(runs):\n    return [run.n for run in runs]", "has a loop"),
        ("api", "def f(a, b):\n    return a.value - b.value", "computes a.value - b.value"),
        ("api", "def f(a):\n" + "    a()\n" * 11, "f has 11 lines"),
        (
            "cli",
            "def f():\n    from isoscope.measures import level",
            "imports isoscope.measures",
        ),
        ("cli", "from isoscope.accumulate.survey import Survey", "imports isoscope.accumulate"),
        ("cli", "def f(a):\n    return a.total / a.count", "computes a.total / a.count"),
        ("cli", "def f(a):\n" + "    a()\n" * 29, "f has 29 lines"),
    ],
)
def test_a_planted_computation_is_caught(folder, text, match):
    (complaint,) = computing(folder, text)
    assert match in complaint


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("api", 'def f(a: "A | None", **options):\n    return call(Spec, a, options)'),
        ("cli", "LARGEST = 2**20\ndef f(size):\n    print(f'{size / 1e6:.2f} MB')"),
        ("cli", "def f(runs):\n    for run in runs:\n        print(run.name + '!')"),
    ],
)
def test_what_only_calls_and_prints_is_not_caught(folder, text):
    assert computing(folder, text) == []


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
        "measures/view/summaries.py",
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


def test_the_sections_of_a_report_never_load_torch():
    code = "from isoscope.exhibit.exhibit import sections\nassert len(sections()) > 10"
    assert "torch" not in loaded(code)


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
