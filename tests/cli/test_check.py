"""isoscope check: exit codes of real processes, and the files that CI pages read."""

import json
import re
import shlex
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from isoscope.cli.main import app
from isoscope.comparison.rule import parse_rule

HOLDS, BREACHED = "mean-cosine > 0.9", "mean-cosine > 0.1"


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (f"--fail-if '{HOLDS}'", 0),
        (f"--fail-if '{HOLDS}' --fail-if '{BREACHED}'", 1),
        (f"--fail-if '{BREACHED}' --json", 1),
        (f"--fail-if '{BREACHED}' --junit j.xml --markdown m.md", 1),
        ("--fail-if 'self-similarity > 0.1'", 2),
        (f"--fail-if 'self-similarity > 0.1' --fail-if '{BREACHED}'", 1),
        ("--fail-if 'mean-cosine > much'", 2),
        ("--fail-if 'mean-cosin > 0.1'", 2),
        ("--fail-if 'isoscore < 0.9x'", 2),
        ("--fail-if 'isoscore < 0.9x' --baseline runs/b", 0),
        ("--fail-if 'isoscore < 1.9x' --baseline runs/b", 1),
        ("--fail-if 'isoscore < 0.9x' --baseline runs/none", 2),
        (f"--fail-if '{BREACHED}' --junit none/j.xml", 2),
        (f"--fail-if '{BREACHED}' --no-such-flag", 2),
        ("", 2),
    ],
)
def test_a_breach_and_a_failure_have_exit_codes_of_their_own(typed, runs, flags, code):
    done = typed(f"isoscope check runs/a {flags}")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert ("error: " in done.stderr) == (code != 0)


def test_a_process_ends_with_that_code(shell, runs):
    lines = [f"--fail-if '{HOLDS}'", f"--fail-if '{BREACHED}'", ""]
    for code, flags in enumerate(lines):
        done = shell(f"isoscope check runs/a {flags}")
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert ("error: " in done.stderr) == (code != 0)


@pytest.mark.parametrize(
    "damage",
    [
        "rm runs/a/run.json",
        "rm -r runs/a",
        "echo x >> runs/a/readings.parquet",
        'sed -i \'s/"schema": *1/"schema": 99/\' runs/a/run.json',
        "echo '{' > runs/a/run.json",
    ],
)
def test_a_run_that_cannot_be_read_is_no_breach(shell, typed, runs, damage):
    assert shell(damage).returncode == 0
    done = typed(f"isoscope check runs/a --fail-if '{BREACHED}'")
    assert done.returncode == 2
    assert done.stdout == "" and "hint:" in done.stderr


def test_a_bug_is_no_breach(shell, runs):
    code = (
        "import isoscope.api as api\n"
        "def broken(*_, **__): raise ZeroDivisionError\n"
        "api.check = broken\n"
        f"import sys; sys.argv = ['isoscope', 'check', 'runs/a', '--fail-if', '{BREACHED}']\n"
        "from isoscope.cli.main import main; main()"
    )
    done = shell(f'{sys.executable} -c "{code}"')
    assert done.returncode == 2
    assert "ZeroDivisionError" in done.stderr


def test_a_breach_within_noise_is_a_warning(isoscope, runs):
    done = isoscope("check", "runs/a", "--fail-if", BREACHED, "--json")
    low, value = (json.loads(done.stdout)[key] for key in ("low", "value"))
    rule = f"mean-cosine > {(low + value) / 2}"
    done = isoscope("check", "runs/a", "--fail-if", rule)
    assert done.exit_code == 0
    assert "warning" in done.stdout and "within noise" in done.stdout
    assert "1 rule: 1 warning" in done.stderr


def test_the_table_names_site_value_and_limit(isoscope, runs):
    done = isoscope("check", "runs/a", "--fail-if", BREACHED, "--fail-if", HOLDS)
    lines = done.stdout.splitlines()
    assert lines[0] == "run a, variant all"
    assert lines[3].startswith("mean-cosine > 0.1  breached  rows  0.5")
    assert lines[4].startswith("mean-cosine > 0.9  holds     rows  0.5")
    assert done.stderr.splitlines()[0] == "2 rules: 1 breached, 1 holds"
    assert "help check-breached" in done.stderr


def test_files_for_ci_pages_are_written_even_when_a_rule_is_breached(isoscope, runs, place):
    files = ("--junit", "j.xml", "--markdown", "m.md")
    done = isoscope("check", "runs/a", "--fail-if", BREACHED, *files, "-q")
    assert done.exit_code == 1
    top = ElementTree.parse(place / "j.xml").getroot()
    assert (top.get("tests"), top.get("failures"), top.get("errors")) == ("1", "1", "0")
    assert (place / "m.md").read_text().startswith("### ❌ isoscope check a\n")


def test_a_summary_replaces_a_file_but_is_added_to_that_of_a_step(
    isoscope, runs, place, monkeypatch
):
    (place / "m.md").write_text("before\n")
    (place / "step.md").write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    for name in ("m.md", "step.md"):
        isoscope("check", "runs/a", "--fail-if", HOLDS, "--markdown", name)
    assert (place / "m.md").read_text().startswith("### ✅")
    assert (place / "step.md").read_text().startswith("before\n### ✅")


def test_rules_may_stand_in_a_config_file(isoscope, runs, place):
    (place / "gate.yaml").write_text(
        "check:\n  fail-if:\n    - mean-cosine > 0.9\n    - isoscore < 0.1x\n"
        "  baseline: runs/b\n"
    )
    done = isoscope("check", "runs/a", "--config", "gate.yaml", "--json")
    assert done.exit_code == 0, done.stderr
    assert [json.loads(line)["rule"] for line in done.stdout.splitlines()] == [
        "mean-cosine > 0.9",
        "isoscore < 0.1x",
    ]


# --- the page about checks ---------------------------------------------------------------


def yaml_blocks():
    page = Path(__file__).parents[2] / "docs" / "check.md"
    found = re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), flags=re.M | re.S)
    return [yaml.safe_load(block) for block in found]


def test_the_workflow_is_yaml_whose_commands_are_ours():
    workflow, _ = yaml_blocks()
    steps = workflow["jobs"]["check"]["steps"]
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    words = [shlex.split(line) for line in lines]
    ours = [line[1:] for line in words if line[0] == "isoscope"]
    assert [line[0] for line in ours] == ["survey", "survey", "check"]
    commands = app.commands
    for name, *arguments in ours:
        parsed_line = commands[name].make_context(name, arguments)
        assert parsed_line.params
    context = commands["check"].make_context("check", ours[-1][1:])
    assert [parse_rule(rule).relative for rule in context.params["rules"]] == [False, True]
    assert str(context.params["run"]) == "runs/new" == ours[1][ours[1].index("-o") + 1]
    assert str(context.params["baseline"]) == "runs/released"
    assert (context.params["junit"].name, str(context.params["markdown"])) == (
        "check.xml",
        "$GITHUB_STEP_SUMMARY",
    )


def test_the_workflow_is_a_file_as_well():
    docs = Path(__file__).parents[2] / "docs"
    text = (docs / "workflows" / "isotropy.yml").read_text()
    assert f"```yaml\n{text}```" in (docs / "check.md").read_text()


def test_the_config_file_of_the_page_has_rules_that_can_be_read():
    _, config = yaml_blocks()
    assert set(config["check"]) == {"baseline", "fail-if"}
    assert [parse_rule(rule).measure for rule in config["check"]["fail-if"]] == [
        "mean-cosine-cross",
        "isoscore-debiased",
    ]
