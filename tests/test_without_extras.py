"""What works where only the core is installed: no torch, no pandas, nothing to draw with."""

import os
import re
import subprocess
import sys
from pathlib import Path

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
COMMANDS = """
from isoscope.cli.main import app
for line in ("survey model texts.txt", "sweep model texts.tsv", "list sites model"):
    try:
        app(line.split())
    except SystemExit as end:
        print("exit", end.code)
"""


def readme_lines():
    text = (ROOT / "README.md").read_text()
    return re.search(r"## Five lines of Python\n\n```python\n(.*?)```", text, re.DOTALL)[1]


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
    assert done.stdout.count("exit 2") == 3
    assert done.stderr.count("needs torch, got none") == 3
    assert "Traceback" not in done.stderr
