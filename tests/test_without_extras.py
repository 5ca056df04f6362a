"""What works where only the core is installed: no torch, no pandas, nothing to draw with."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Packages of the extras are not found, as if they were not there.
WITHOUT = """
import importlib.machinery, sys
missing = {"torch", "transformers", "pandas", "polars", "scipy", "sklearn", "altair", "gguf"}
find = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = classmethod(
    lambda cls, name, path=None, target=None:
        None if name.partition(".")[0] in missing else find(name, path, target)
)
"""
CONTROL = """
import isoscope.errors
try:
    import isoscope.control
except ImportError as error:
    assert isinstance(error, isoscope.errors.IsoscopeError)
    print(error)
"""
LINES = (
    "survey model texts.txt", "sweep model texts.tsv", "list sites model", "trajectory series",
    "attention model", "drift", "nursery train", "nursery ablate",
)  # fmt: skip
COMMANDS = f"""
LINES = {LINES!r}
from isoscope.cli.main import app
for line in LINES:
    try:
        app(line.split())
    except SystemExit as end:
        print("exit", end.code)
"""


def readme_lines():
    text = (ROOT / "README.md").read_text()
    return re.search(r"## Five lines of Python\n\n```python\n(.*?)```", text, re.DOTALL)[1]


@pytest.mark.slow
def test_a_wheel_in_an_empty_environment_runs_the_readme(tmp_path):
    """Build, install without extras, run; packages come from where `make setup` gets them."""
    bare = {name: each for name, each in os.environ.items() if not name.startswith("PYTHON")}

    def run(*words, code=0):
        done = subprocess.run(
            words, cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    own = tmp_path / "venv" / "bin"
    run(sys.executable, "-m", "venv", "venv")
    pip = (str(own / "python"), "-m", "pip", "-q", "--disable-pip-version-check")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("src", "docs", "README.md", "LICENSE", "pyproject.toml"):
        (source / name).symlink_to(ROOT / name)
    run(*pip, "wheel", "--no-deps", "-w", "wheels", str(source))
    (wheel,) = (tmp_path / "wheels").iterdir()
    run(*pip, "install", "-c", str(ROOT / "constraints.txt"), str(wheel))
    assert "mean-cosine" in run(str(own / "python"), "-c", readme_lines())
    isoscope = str(own / "isoscope")
    assert run(isoscope, "help", "rows-memory").startswith("Symptom: measuring rows of width")
    assert "pip install 'isoscope[hf]'" in run(isoscope, "survey", "model", code=2)
    failed = run(str(own / "python"), "-c", "import isoscope.control", code=1)
    assert "isoscope.control needs torch, got none" in failed
    save = "import numpy as np; np.save('v.npy', np.random.default_rng(0).normal(size=(99, 8)))"
    run(str(own / "python"), "-c", save)
    assert "saved run" in run(isoscope, "measure", "v.npy", "-o", "run")
    assert "mean-cosine" in run(isoscope, "read", "run")


def test_a_core_install_runs_the_readme_and_names_what_is_missing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + readme_lines() + CONTROL + COMMANDS],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "mean-cosine" in done.stdout
    assert (
        "isoscope.control needs torch, got none\n  hint: pip install 'isoscope[hf]'\n"
        "  see:  isoscope help extra-missing\n"
    ) in done.stdout
    assert done.stdout.count("exit 2") == len(LINES)
    assert done.stderr.count("needs torch, got none") == len(LINES)
    assert "Traceback" not in done.stderr
