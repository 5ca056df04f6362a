"""Where errors become exit codes, in real processes."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from isoscope.cli.main import app
from isoscope.errors import StoreError


def test_help_takes_a_third_of_a_second_at_most(place, environment):
    clean = {k: v for k, v in environment.items() if not k.startswith("COV")}
    taken = []
    for _ in range(3):  # the first may compile
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(["isoscope", "--help"], env=clean, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) <= 0.3


@pytest.mark.parametrize(
    ("command", "needed"),
    [("", ""), ("read", ""), ("demo", "msgspec"), ("measure", "msgspec numpy")],
)
def test_help_loads_nothing_heavy(place, environment, command, needed):
    """Flags that follow from a spec need its module, and no more."""
    code = (
        "import sys\n"
        "from isoscope.cli.main import app\n"
        "try:\n"
        f"    app([*{command.split()!r}, '--help'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "heavy = {'numpy', 'pyarrow', 'torch', 'rich', 'yaml', 'pandas', 'polars', 'msgspec'}\n"
        "sys.stderr.write(' '.join(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == needed


def test_measuring_loads_neither_torch_nor_pyarrow(place, environment):
    code = (
        "import sys\n"
        "from isoscope.cli.main import app\n"
        "try:\n"
        "    app(['measure', 'vectors.npy', '--json'])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0\n"
        "heavy = {'torch', 'pyarrow', 'pandas', 'polars', 'rich', 'scipy'}\n"
        "sys.stderr.write(' '.join(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


def test_the_version_is_reported(isoscope):
    done = isoscope("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("isoscope ")


def test_without_a_command_help_goes_to_stderr(isoscope):
    done = isoscope()
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Usage: isoscope")


@pytest.mark.parametrize(
    ("line", "problem", "hint"),
    [
        ("mesure x", "no command is called 'mesure'", "did you mean 'measure'"),
        ("qqqq", "no command is called 'qqqq'", "see isoscope --help"),
        ("measure x --jsno", "no option is called '--jsno'", "did you mean '--json'?"),
        ("measure x -x", "no option is called '-x'", "see isoscope measure --help"),
        ("measure", "missing argument 'VECTORS'", "see isoscope measure --help"),
        ("measure x y", "got unexpected extra argument", "see isoscope measure --help"),
        ("measure x --seed one", "invalid value for '--seed'", "see isoscope measure --help"),
        ("measure x -m", "option '-m' requires an argument", "see isoscope"),
        ("read x --json --csv", "cannot print --json with --csv", "choose one format"),
    ],
)
def test_a_wrong_command_line_is_one_clear_error(isoscope, line, problem, hint):
    done = isoscope(*line.split())
    assert done.exit_code == 2
    assert done.stdout == ""
    first, second, third = done.stderr.splitlines()
    assert first.startswith(f"error: {problem}")
    assert second.startswith(f"  hint: {hint}")
    assert third.startswith("  see:  isoscope help ")


def test_names_in_an_error_are_made_harmless(isoscope):
    done = isoscope("read", "\x1b[2J\x07nothing")
    assert done.exit_code == 2
    assert "\x1b" not in done.stderr
    assert r"\x1b[2J\x07nothing" in done.stderr


@pytest.mark.parametrize(
    "bug", ["ZeroDivisionError", "PermissionError", "EOFError", "SystemError"]
)
def test_a_bug_keeps_its_traceback_and_is_not_taken_for_a_gate(shell, bug):
    code = (
        "import isoscope.api as api\n"
        f"def broken(**_): raise {bug}\n"
        "api.demo = broken\n"
        "import sys; sys.argv = ['isoscope', 'demo']\n"
        "from isoscope.cli.main import main; main()"
    )
    done = shell(f'{sys.executable} -c "{code}"')
    assert done.returncode == 2  # 1 is for gates
    assert "Traceback (most recent call last)" in done.stderr
    assert bug in done.stderr


def test_inside_another_program_the_errors_are_raised(place):
    with pytest.raises(StoreError, match="no run folder is called"):
        app(["read", "nothing"], standalone_mode=False)


def test_an_error_of_ours_has_its_own_exit_code(isoscope, monkeypatch):
    def refuse(**_):
        raise StoreError("no", hint="yes", slug="x")

    monkeypatch.setattr("isoscope.api.demo", refuse)
    done = isoscope("demo")
    assert done.exit_code == 2
    assert done.stderr == "error: no\n  hint: yes\n  see:  isoscope help x\n"


@pytest.mark.parametrize("command", ["--help", "measure --help", "list measures --json"])
def test_a_reader_that_has_seen_enough_is_no_error(shell, command):
    done = shell(f"isoscope {command} | head -n 1; echo ${{PIPESTATUS[0]}}")
    first, code = done.stdout.splitlines()
    assert first
    assert code == "0"
    assert done.stderr == ""


def test_a_closed_pipe_is_no_error_either(shell):
    done = shell("isoscope list measures --json | true; echo ${PIPESTATUS[0]}")
    assert done.stdout == "0\n"
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("command", ["--help", "list measures", "list measures --json"])
def test_a_full_disk_under_stdout_is_one_line(shell, command):
    done = shell(f"isoscope {command} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines()[0] == (
        "error: cannot write the output: No space left on device"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
def test_only_gates_leave_with_1_whatever_the_streams_are(shell):
    ways = ["2> /dev/full", ">&-", "2>&-", "> /dev/full 2> /dev/full", ">&- 2>&-"]
    done = shell(
        "".join(
            f"isoscope list nothing {way}; echo $? >> codes; isoscope list groups {way}; "
            "echo $? >> codes;\n"
            for way in ways
        )
        + "cat codes"
    )
    codes = done.stdout.split()
    assert codes[0::2] == ["2"] * 5
    assert "1" not in codes
    assert "Traceback" not in done.stderr


def test_an_interrupt_is_one_line_and_130(place, environment):
    code = (
        "import time, isoscope.api as api\n"
        "def slow(**_):\n"
        "    open('started', 'w').close()\n"
        "    time.sleep(60)\n"
        "api.demo = slow\n"
        "import sys; sys.argv = ['isoscope', 'demo']\n"
        "from isoscope.cli.main import main; main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stderr=subprocess.PIPE, text=True
    )
    while not (place / "started").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err == "error: interrupted\n"


def test_a_name_no_terminal_can_show_is_no_reason_to_fail(shell):
    done = shell("cp vectors.npy $'caf\\xe9.npy' && isoscope measure $'caf\\xe9.npy' --csv")
    assert done.returncode == 0, done.stderr
    assert "caf" in done.stdout


def test_commands_are_listed_in_the_order_of_work():
    assert list(app.commands) == [
        "measure", "survey", "merge", "read", "report", "figure", "compare", "check",
        "attention", "curvature", "dimensions", "drift", "explain", "matrices", "norm",
        "nursery train", "nursery ablate", "probe", "sweep", "tangent", "trajectory", "zero",
        "list", "help", "demo",
    ]  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_be_taught_the_commands(isoscope, shell):
    done = isoscope("--show-completion", shell)
    assert done.exit_code == 0 and "_ISOSCOPE_COMPLETE" in done.stdout
    assert isoscope("--show-completion", "dos").exit_code == 2


def test_completion_knows_commands_and_flags(monkeypatch, isoscope):
    monkeypatch.setenv("_ISOSCOPE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "isoscope surv")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "plain,survey" in isoscope().stdout
    monkeypatch.setenv("COMP_WORDS", "isoscope survey --tok")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert "plain,--tokens" in isoscope().stdout


def test_a_misspelt_command_is_one_line_and_the_nearest_name(isoscope):
    said = isoscope("mesure", "vectors.npy").stderr.splitlines()
    assert said[0] == "error: no command is called 'mesure'"
    assert said[1] == "  hint: did you mean 'measure'?"


def test_commands_of_two_words_are_one_line_and_have_a_page_of_their_own(isoscope):
    listed = isoscope("--help").stdout
    assert "nursery     The commands nursery train and nursery ablate." in listed
    page = isoscope("nursery", "--help").stdout
    assert page.index("  train  ") < page.index("  ablate  ")
    done = isoscope("nursery", "trian")
    assert done.exit_code == 2 and "did you mean 'train'?" in done.stderr
    assert isoscope("help", "nursery train").stdout.startswith("Usage: isoscope")


@pytest.mark.parametrize(
    ("name", "taken_apart"),
    [("isoscope", False), ("isoscope/__main__.py", False), ("other/__main__.py", True)],
)
def test_the_command_leaves_at_once_after_everything_that_was_to_be_done(
    place, environment, name, taken_apart
):
    code = (
        "import atexit, tempfile, sys, isoscope.api as api\n"
        "class Last:\n"
        "    def __del__(self, open=open): open('apart', 'w').close()\n"
        "def demo(**_):\n"
        "    global folder\n"
        "    folder = tempfile.TemporaryDirectory(dir='.', prefix='spare')\n"
        "    atexit.register(lambda: open('done', 'w').close())\n"
        "    sys.exit(3)\n"
        "last, api.demo = Last(), demo\n"
        "sys.argv[1:] = ['demo']\n"
        "from isoscope.cli.main import main; main()\n"
    )
    program = place / "programs" / name
    program.parent.mkdir(parents=True)
    program.write_text(code)
    done = subprocess.run([sys.executable, str(program)], env=environment, check=False)
    assert done.returncode == 3
    assert (place / "done").exists()
    assert not list(place.glob("spare*"))
    assert (place / "apart").exists() is taken_apart


def test_a_family_of_commands_alone_prints_its_help_page(capsys):
    with pytest.raises(SystemExit) as end:
        app(["nursery"])
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert said.startswith("Usage: isoscope nursery") and "\n  train " in said
