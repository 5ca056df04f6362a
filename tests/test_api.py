"""The package as Python users see it: functions by name, folders as modules, nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import isoscope


def test_the_package_lists_its_functions_and_nothing_else():
    assert dir(isoscope) == list(isoscope.__all__)
    assert all(callable(getattr(isoscope, name)) for name in dir(isoscope))


def test_folders_and_functions_live_side_by_side():
    code = (
        "import isoscope.measures.base as base, isoscope.study.survey, isoscope.display.table\n"
        "import isoscope\n"
        "assert base.measure is not isoscope.measure\n"
        "assert isoscope.measures.base is base\n"
        "assert isoscope.survey.__module__ == 'isoscope.api'\n"
        "isoscope.measure = 3; assert isoscope.measure == 3\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(isoscope.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def test_no_folder_bears_the_name_of_a_function():
    from importlib.util import find_spec

    assert [name for name in isoscope.__all__ if find_spec(f"isoscope.{name}")] == []
