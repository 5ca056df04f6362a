"""A measure costs what CONTRIBUTING says: its steps, followed to the letter, pass the laws."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text().partition("## Add a measure")[2]
GUIDE = GUIDE.partition("\n## ")[0]
COPIED = ("src/isoscope", "tests/laws", "pyproject.toml", "docs/references.bib")


def steps(guide):
    """Yield the file that each step names, and the kind and text of what it shows."""
    for step in re.split(r"\n(?=\*\*)", guide):
        shown = re.search(r"```(\w+)\n(.*?)```", step, re.S)
        if shown is not None:
            file = re.search(r"`((?:src|tests)/[\w/]+\.py)`", step)
            yield file[1], shown[1], shown[2]


def follow(guide, root):
    """Write the files that the guide shows, and add the lines it marks with a plus."""
    for file, kind, text in steps(guide):
        path = root / file
        if kind == "python":
            assert not path.exists(), f"{file} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            continue
        lines = text.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] != "+")
        after = "".join(line[1:] for line in lines if line[0] != "-")
        assert path.read_text().count(before) == 1
        path.write_text(path.read_text().replace(before, after))


@pytest.fixture
def copy(tmp_path):
    """A copy of the package and of the laws."""
    for name in COPIED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        ignored = shutil.ignore_patterns("*.pyc.*", "test_[cp]*.py")  # .pyc.* is half written
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(root, *arguments):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout


LAWS = re.search(r"`\.venv/bin/python -m pytest (tests/laws -k [\w-]+)`", GUIDE)[1].split()
# Mistakes that a law must find, each as what the guide has and what the mistake makes of it.
WRONG = {
    "ball": ("1.0 - second / first", "1.0 - 0.7 * second / first"),
    "isotropic": ("isotropic=0.0", "isotropic=0.2"),
    "claimed": ("seen.values[:2]", "seen.values[:2] + 1.0"),
    "unclaimed": ('{"rotation", "scale", "shift"}', '{"rotation"}'),
    "collapsed": ("collapsed=1.0", "collapsed=0.8"),
}


def add_wrong(root):
    """Add a copy of the measure for each mistake, under a name of its own."""
    module = root / "src/isoscope/measures/spectral_gap.py"
    index = root / "src/isoscope/measures/__init__.py"
    for name, (right, wrong) in WRONG.items():
        assert module.read_text().count(right) == 1
        text = module.read_text().replace(right, wrong)
        text = text.replace('"spectral-gap"', f'"spectral-gap-{name}"')
        module.with_stem(f"spectral_gap_{name}").write_text(text)
        line = '    "spectral_gap",\n'
        added = line + f'    "spectral_gap_{name}",\n'
        index.write_text(index.read_text().replace(line, added))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_guide_followed_to_the_letter_passes_the_laws_and_mistakes_fail_them(copy):
    follow(GUIDE, copy)
    add_wrong(copy)
    own = "tests/measures/test_spectral_gap.py"
    _, said = run(copy, own, *LAWS[:-1], f"{LAWS[-1]} or {Path(own).stem}", "-rA")
    of_guide = re.findall(rf"^(PASSED|FAILED|ERROR) {own}", said, re.M)
    assert of_guide and set(of_guide) == {"PASSED"}, said
    results = re.findall(
        r"^(PASSED|FAILED) \S+\[(?:\S*-)?(spectral-gap(?:-[a-z]+)?)\b", said, re.M
    )
    assert sum(result == ("PASSED", "spectral-gap") for result in results) >= 13, said
    failed = {name for state, name in results if state == "FAILED"}
    assert failed == {f"spectral-gap-{name}" for name in WRONG}, said
