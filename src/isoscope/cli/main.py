"""The command line: a list of commands, and the one place errors become exit codes."""

import errno
import os
import signal
import sys
import traceback
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from isoscope.cli import (
    check,
    compare,
    demo,
    dimensions,
    explain,
    figure,
    matrices,
    measure,
    merge,
    norm,
    probe,
    read,
    report,
    survey,
    sweep,
    zero,
)
from isoscope.cli import list as listing
from isoscope.cli.help import PlainCommand
from isoscope.errors import DOCS, IsoscopeError

CANNOT, INTERRUPTED, TERMINATED = 2, 130, 143  # 1 is for gates
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
EXAMPLES = """\b
Examples:
  isoscope measure vectors.npy
  isoscope survey models/minilm
  isoscope list measures
"""


class Commands(TyperGroup):
    """A group that prints errors of ours as text and leaves real bugs as tracebacks."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command and leave with its exit code."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            code = super().main(*args, standalone_mode=False, **extra)
            sys.stdout.flush()  # here, where a closed pipe or a full disk can still be told
        except IsoscopeError as error:
            code = _say(str(error), error.code)
        except typer.TyperException as error:
            code = _say(_usage(error), CANNOT)
        except (OSError, SystemExit) as error:
            code = _stopped(error)
        if code == INTERRUPTED:
            _say("interrupted", INTERRUPTED)
        sys.exit(code or 0)


app = typer.Typer(
    cls=Commands,
    epilog=EXAMPLES,
    rich_markup_mode=None,  # boxes and colours would take twice the time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
    invoke_without_command=True,
)
_READING = (measure, survey, merge, read, explain)
_PAGES = (report, figure, compare, check)
_LAB = (dimensions, norm, matrices, zero, probe, sweep)
for _module in (*_READING, *_PAGES, *_LAB, listing, demo):
    app.command(_module.NAME, cls=PlainCommand, epilog=_module.EXAMPLES)(_module.command)


def _version(asked: bool) -> None:
    if asked:
        from isoscope.store.origin import versions

        typer.echo(f"isoscope {versions()['isoscope']}")
        raise typer.Exit


@app.callback()
def isoscope(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Measure the anisotropy of vectors: one pass, any size, every number with an interval.

    Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a gate tripped,
    2 it cannot be done.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(CANNOT)


def main() -> None:
    """Run `isoscope`."""
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding cannot show is no reason to lose a table.
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    # Schedulers end jobs so; leaving by an exception lets half-written folders be removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        app(prog_name="isoscope")
    except Exception:  # a bug; Python would leave with 1, which says that a gate tripped
        traceback.print_exc()
        sys.exit(CANNOT)


def _say(text: str, code: int) -> int:
    """Print an error to stderr; names in it may come from files and are made harmless."""
    from isoscope.report.escape import plain

    typer.echo("\n".join(map(plain, f"error: {text}".split("\n"))), err=True)
    return code


def _usage(error: typer.TyperException) -> str:
    """What is wrong with a command line, in the shape of our own errors."""
    problem, _, meant = error.format_message().partition(" Did you mean ")
    problem = problem.partition(" (Possible options")[0].rstrip(".")
    problem = problem.replace("No such command", "no command is called")
    if problem.startswith("No such option"):
        problem = f"no option is called {getattr(error, 'option_name', '')!r}"
    near = [repr(name) for name in getattr(error, "possibilities", None) or ()]
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "isoscope"
    hint = f"did you mean {meant or near[0] + '?'}" if meant or near else f"see {path} --help"
    return f"{problem[:1].lower()}{problem[1:]}\n  hint: {hint}\n  see:  {DOCS}#usage"


def _stopped(error: OSError | SystemExit) -> int:
    """A reader that has seen enough is no error; a full disk is the user's, not a bug."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if not isinstance(cause, OSError) or cause.errno not in {errno.EPIPE, *FULL}:
        raise error
    with suppress(OSError):  # or Python would try the rest at exit, and fail once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if cause.errno == errno.EPIPE:
        return 0
    problem = f"cannot write the output: {cause.strerror}"
    hint = "free some space, or write somewhere else"
    return _say(f"{problem}\n  hint: {hint}\n  see:  {DOCS}#disk-full", CANNOT)
