"""The documentation is executable: every slug, measure, command, link and example is real."""

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "isoscope"
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
EXAMPLES = [ROOT / "README.md", DOCS / "start.md"]


# --- slugs -----------------------------------------------------------------------------


def slugs(text):
    """Return the slugs a module uses, and patterns for those it puts together."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    plain, patterns = set(), set()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        named = [k.value for k in node.keywords if k.arg == "slug"]
        for value in [*named, *(node.args[2:3] if called(node) == "error_text" else ())]:
            if isinstance(value, ast.JoinedStr):
                pieces = (getattr(piece, "value", None) for piece in value.values)
                patterns.add(
                    "".join(re.escape(p) if isinstance(p, str) else "[a-z-]+" for p in pieces)
                )
            elif isinstance(value, ast.Name):
                plain |= unpacked(tree, value.id)
            else:  # a string, or one of two
                plain |= {n.value for n in ast.walk(value) if is_text(n)}
    # Registry("measure") means unknown-measure, `raise unknown("column", ...)` unknown-column
    thrown = [n for n in nodes if isinstance(n, ast.Raise | ast.Return)]
    calls = [getattr(n, "exc", None) or getattr(n, "value", None) for n in thrown]
    calls += [n for n in nodes if called(n) == "Registry"]
    for call in calls:
        if called(call) in {"Registry", "unknown"} and call.args and is_text(call.args[0]):
            plain.add(f"unknown-{call.args[0].value.replace(' ', '-')}")
    return plain, patterns


def called(node):
    """Return the last name of what a call calls; nothing for anything else."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def unpacked(tree, name):
    """Return the strings `name` can be after `a, name = function(...)` in the same module."""
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
            names = [getattr(target, "id", "") for target in node.targets[0].elts]
            made_by = functions.get(getattr(getattr(node.value, "func", None), "id", ""))
            if name in names and made_by:
                tuples = [n for n in ast.walk(made_by) if isinstance(n, ast.Return)]
                found |= {n.value.elts[names.index(name)].value for n in tuples}
    return found


@cache
def used_slugs():
    found = [slugs(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))]
    return set().union(*(plain for plain, _ in found)), set().union(
        *(some for _, some in found)
    )


def headings(page):
    return re.findall(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)


def test_every_slug_is_a_heading_of_the_errors_page():
    assert used_slugs()[0] - set(headings(DOCS / "errors.md")) == set()


def test_every_option_of_a_few_words_has_its_error_on_the_page():
    from isoscope.study.experiment import built_in

    options = [each for found in built_in() for each in found.spec.options().values()]
    slugs = {
        f"unknown-{(option.about.noun or option.flag).replace(' ', '-')}"
        for option in options
        if option.words
    }
    assert slugs and slugs - set(headings(DOCS / "errors.md")) == set()


def test_every_heading_of_the_errors_page_is_a_slug_in_use():
    plain, patterns = used_slugs()
    unused = set(headings(DOCS / "errors.md")) - plain
    assert {h for h in unused if not any(re.fullmatch(p, h) for p in patterns)} == set()


def test_every_error_has_its_symptom_cause_and_fix():
    sections = re.split(r"^## ", (DOCS / "errors.md").read_text(), flags=re.MULTILINE)[1:]
    lacking = [
        f"{section.splitlines()[0]} has no {word}"
        for section in sections
        for word in ("Symptom", "Cause", "Fix")
        if f"**{word}**" not in section
    ]
    assert lacking == []


def test_slugs_are_found_however_they_are_written():
    text = "\n".join(
        [
            "raise E('x', hint='y', slug='rows-width')",
            "raise E('x', slug=f'unknown-{kind}')",
            "SITES = Registry('weight site')",
            "raise unknown('column', name, names)",
            "raise E('x', slug='too-short' if short else 'too-long')",
            "hint, slug = chosen(kind)\nraise E('x', hint=hint, slug=slug)",
            "print(error_text('x', 'y', 'usage'))",
            "def chosen(kind):\n    return ('do this', 'strings')",
        ]
    )
    plain, patterns = slugs(text)
    simple = {"rows-width", "unknown-weight-site", "unknown-column"}
    assert plain == simple | {"too-short", "too-long", "strings", "usage"}
    assert patterns == {r"unknown\-[a-z-]+"}


# --- measures and citations ------------------------------------------------------------


def bibliography():
    text = (DOCS / "references.bib").read_text()
    return re.findall(r"^@\w+\{(\w+),$", text, flags=re.MULTILINE)


def records():
    return list(import_module("isoscope.measures").MEASURES.values())


def test_keys_of_the_bibliography_are_unique():
    keys = bibliography()
    assert len(keys) == len(set(keys)) > 0


def test_there_are_measures():
    assert records()


def test_every_measure_cites_a_work_in_the_bibliography():
    keys = set(bibliography())
    assert {r.name: r.cite for r in records() if r.cite not in keys} == {}


def test_every_measure_has_a_page_that_cites_its_work():
    bad = []
    for record in records():
        page = DOCS / "measures" / f"{record.name}.md"
        if not page.exists() or record.cite not in page.read_text():
            bad.append(record.name)
    assert bad == []


def test_every_page_of_a_measure_has_its_measure_and_its_line_in_the_index():
    names = {record.name for record in records()}
    pages = {p.stem for p in (DOCS / "measures").glob("*.md")} - {"index"}
    assert pages == names
    listed = set(re.findall(r"\]\(([\w-]+)\.md\)", (DOCS / "measures/index.md").read_text()))
    assert listed >= names


def test_keys_cited_in_the_pages_are_in_the_bibliography():
    cited = {
        k for page in PAGES for k in re.findall(r"`([a-z]+(?:19|20)\d\d)`", page.read_text())
    }
    assert cited - set(bibliography()) == set()


# --- commands and examples -------------------------------------------------------------


def commands():
    from isoscope.cli.main import app

    return set(app.list_commands(None))


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), flags=re.M | re.S)


def shell_lines(page):
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line.strip() and not line.startswith("#")]


def test_every_command_has_its_section_and_every_section_its_command():
    sections = {h.removeprefix("isoscope ") for h in headings(DOCS / "cli.md")}
    assert sections == commands()


def test_every_flag_is_on_the_command_line_page_and_every_flag_there_exists():
    page = (DOCS / "cli.md").read_text()
    for section in re.split(r"^## isoscope ", page, flags=re.MULTILINE)[1:]:
        name = section.splitlines()[0]
        shown = isoscope(*name.split(), "--help").partition("Examples:")[0]
        there, told = (
            set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", s)) for s in (shown, section)
        )
        long = {"--help", "--measure", "--output", "--site", "--quiet"}  # the page uses letters
        assert told - there == there - told - long == set(), f"isoscope {name}"


def isoscope(*words):
    """Run a command in this process, which has long loaded what a new one loads for seconds."""
    from click.testing import CliRunner

    from isoscope.cli.main import app

    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, words, prog_name="isoscope")
    assert done.exit_code == 0, done.stderr
    return done.stdout


@pytest.fixture
def desk(tmp_path, tiny, texts):
    """A folder with the files that the examples of the pages speak of."""
    rows = np.random.default_rng(11).normal(size=(600, 16)).astype(np.float32)
    for name in ("vectors", "part-1", "part-2"):
        np.save(tmp_path / f"{name}.npy", rows + len(name))
        rows = rows[::-1] * 1.1
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 16)
    (tmp_path / "path" / "to").mkdir(parents=True)
    (tmp_path / "path" / "to" / "model").symlink_to(tiny)
    (tmp_path / "corpus.txt").write_text("\n".join(texts))
    names = pa.array([f"text-{i // 6:03}" for i in range(len(rows))])
    table = pa.table({"text_id": names, "embedding": vectors})
    for name in ("tokens", "table"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda p: p.name)
def test_the_shell_examples_run(page, desk, small_demo, monkeypatch):
    monkeypatch.chdir(desk)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    ran = 0
    for line in shell_lines(page):
        words = shlex.split(line, comments=True)
        if words[0] == "isoscope":
            assert isoscope(*words[1:]) or "-o" in words
            ran += 1
        elif words[0] == "make":
            assert words[1] in targets
        else:
            assert words[:2] == ["pip", "install"], f"nobody checks: {line}"
    assert ran


@pytest.mark.parametrize("page", [*EXAMPLES, DOCS / "control.md"], ids=lambda p: p.name)
def test_the_python_examples_run(page, desk, monkeypatch):
    monkeypatch.chdir(desk)
    examples = blocks(page, "python")
    assert examples
    for example in examples:
        exec(compile(example, page.name, "exec"), {})


def test_the_recipe_for_a_measure_works():
    recipe, _test = blocks(ROOT / "CONTRIBUTING.md", "python")
    check = (
        "from isoscope.measures import MEASURES\n"
        "record = MEASURES['spectral-gap']\n"
        "assert record.title.endswith('.') and record.cite\n"
    )
    done = subprocess.run(  # elsewhere, so that no other test sees this measure
        [sys.executable, "-c", recipe + check],
        env={**os.environ, "PYTHONPATH": str(SOURCE.parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_readme_shows_a_real_run_of_the_demo():
    text = (ROOT / "README.md").read_text()
    shown = re.search(r"<!-- demo:start -->\n(.*?)<!-- demo:end -->", text, flags=re.S)
    assert shown and "mean-cosine" in shown[1]


# --- the site --------------------------------------------------------------------------


def nav_pages(entries):
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for value in entry.values():
                yield from [value] if isinstance(value, str) else nav_pages(value)


def test_every_page_of_the_navigation_exists_and_no_page_is_lost():
    config = tomllib.loads((ROOT / "zensical.toml").read_text())
    named = set(nav_pages(config["project"]["nav"]))
    there = {str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")}
    assert named - there == set()
    linked = {
        f"{folder}/{target}"
        for folder in ("adr", "measures")
        for target in re.findall(
            r"\]\(([\w-]+\.md)\)", (DOCS / folder / "index.md").read_text()
        )
    }
    assert there - named - linked == set()


def test_links_lead_somewhere():
    lost = []
    for page in PAGES:
        prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
        targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", prose)
        here = [each for each in targets if "://" not in each]
        lost += [f"{page.name}: {each}" for each in here if not (page.parent / each).exists()]
    assert lost == []


# What stands as an example of a file to write, and the decision that lists what was moved.
NO_MAPS = {ROOT / "CONTRIBUTING.md", DOCS / "adr" / "0030-rooms.md"}


def test_every_file_of_the_project_that_a_page_names_exists():
    named = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.py)`")
    paths = [(page, path) for page in PAGES for path in named.findall(page.read_text("utf-8"))]
    lost = [
        f"{page.name}: {path}"
        for page, path in paths
        if page not in NO_MAPS and not ((SOURCE / path).is_file() or (ROOT / path).is_file())
    ]
    assert len(paths) > 20
    assert lost == []


def test_decisions_are_numbered_without_a_gap_and_have_four_parts():
    pages = sorted((DOCS / "adr").glob("0*.md"))
    assert [int(p.name[:4]) for p in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text()
        assert "**Status:**" in text, page.name
        assert headings(page) == ["Context", "Decision", "Consequences"], page.name


def test_the_changelog_keeps_its_shape():
    text = (ROOT / "CHANGELOG.md").read_text()
    newest = re.split(r"^## ", text, flags=re.MULTILINE)[1]
    parts = re.findall(r"^### (.+)$", newest, flags=re.MULTILINE)
    assert parts == ["Added", "Changed", "Changed numbers", "Fixed"]
