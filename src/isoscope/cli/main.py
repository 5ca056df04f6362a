"""The command line: a list of commands, and the one place errors become exit codes."""

import errno
import os
import signal
import sys
import traceback
from contextlib import suppress
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from isoscope.cli import demo, runs
from isoscope.cli import list as listing
from isoscope.cli.command import PlainCommand, SpecCommand, epilog
from isoscope.errors import DOCS, IsoscopeError
from isoscope.study.experiment import BUILT_IN, find_experiment, others

if TYPE_CHECKING:
    from typer._click import core

CANNOT, INTERRUPTED, TERMINATED = 2, 130, 143  # 1 is for gates
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
EXAMPLES = (
    "isoscope measure vectors.npy",
    "isoscope survey models/minilm",
    "isoscope list measures",
)


class Commands(TyperGroup):
    """A group that prints errors of ours as text and leaves real bugs as tracebacks."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command and leave with its exit code."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            code = super().main(*args, standalone_mode=False, **extra)
            sys.stdout.flush()  # here, where a closed pipe or a full disk can still be reported
        except IsoscopeError as error:
            code = _print_error(error.with_flags(), error.code)
        except typer.TyperException as error:
            code = _print_error(_usage(error), CANNOT)
        except (OSError, SystemExit) as error:
            code = _exit_code(error)
        if code == INTERRUPTED:
            _print_error("interrupted", INTERRUPTED)
        sys.exit(code or 0)

    def list_commands(self, ctx: "core.Context") -> list[str]:
        """Return all names; experiments of other packages come last."""
        for name in others():
            if name not in self.commands:
                self.add_command(_command_of(name))
        return super().list_commands(ctx)

    def get_command(self, ctx: "core.Context", cmd_name: str) -> "core.Command | None":
        """Return a command; other packages are looked through where it is none of ours."""
        if cmd_name not in self.commands:
            self.list_commands(ctx)
        return super().get_command(ctx, cmd_name)


def _command_of(name: str) -> SpecCommand:
    """Return the command of an experiment; one that cannot be loaded says so when it runs."""
    try:
        found = find_experiment(name)
    except IsoscopeError as error:
        return SpecCommand(name=name, help=f"({error.problem})", rich_markup_mode=None)
    return SpecCommand(
        name=name,
        help=cleandoc(found.help),
        epilog=epilog(found.examples),
        rich_markup_mode=None,
    )


app = typer.Typer(
    cls=Commands,
    epilog=epilog(EXAMPLES),
    rich_markup_mode=None,  # boxes and colours would take twice the time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
    invoke_without_command=True,
)


def _derived() -> None:
    """Take the place of a function in commands whose flags come from a spec."""


_FIRST = ("measure", "survey")
_OWN = {
    "merge": runs.merge,
    "read": runs.read,
    "report": runs.report,
    "figure": runs.figure,
    "compare": runs.compare,
    "check": runs.check,
    "list": listing.list_names,
}
# In the order of the help page: experiments other than the first two stand before `list`.
for _name in dict.fromkeys((*_FIRST, *list(_OWN)[:-1], *BUILT_IN, "list")):
    if _name in BUILT_IN:
        _found = find_experiment(_name)
        _examples = epilog(_found.examples)
        app.command(_name, cls=SpecCommand, help=_found.help, epilog=_examples)(_derived)
    else:
        _examples = epilog((runs.EXAMPLES | listing.EXAMPLES)[_name])
        app.command(_name, cls=PlainCommand, epilog=_examples)(_OWN[_name])
app.command("demo", cls=demo.DemoCommand, epilog=epilog(demo.EXAMPLES))(demo.demo)


def _version(is_set: bool) -> None:
    if is_set:
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
    2 the command cannot be done.
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


def _print_error(text: str, code: int) -> int:
    """Print an error to stderr; control characters of names in it are escaped."""
    from isoscope.display.escape import plain

    typer.echo("\n".join(map(plain, f"error: {text}".split("\n"))), err=True)
    return code


def _usage(error: typer.TyperException) -> str:
    """Return what is wrong with a command line, in the shape of our own errors."""
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


def _exit_code(error: OSError | SystemExit) -> int:
    """Return the exit code: a closed pipe is no error, a full disk is one of the user's."""
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if not isinstance(cause, OSError) or cause.errno not in {errno.EPIPE, *FULL}:
        raise error
    with suppress(OSError):  # or Python would try the rest at exit, and fail once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if cause.errno == errno.EPIPE:
        return 0
    problem = f"cannot write the output: {cause.strerror}"
    hint = "free some space, or write somewhere else"
    return _print_error(f"{problem}\n  hint: {hint}\n  see:  {DOCS}#disk-full", CANNOT)
