"""The command line: a list of commands, and the one place errors become exit codes."""

import atexit
import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from inspect import cleandoc, getdoc
from pathlib import Path
from typing import Any, TextIO

import click
from click.shell_completion import get_completion_class, shell_complete

from isoscope.cli import collector, demo, runs
from isoscope.cli import help as helping
from isoscope.cli import list as listing
from isoscope.cli.command import SpecCommand, epilog
from isoscope.errors import IsoscopeError, error_text
from isoscope.study.experiment import BUILT_IN, FAMILIES, find_experiment, others

CANNOT, INTERRUPTED, TERMINATED = 2, 130, 143  # 1 is for gates
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
EXAMPLES = (
    "isoscope measure vectors.npy",
    "isoscope survey models/minilm",
    "isoscope list measures",
)


COMPLETE = "_ISOSCOPE_COMPLETE"  # the variable by which a shell asks for completions


class Commands(click.Group):
    """A group that prints errors of ours as text and leaves real bugs as tracebacks."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command and leave with its exit code; inside another program, raise."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        name, words = prog_name or "isoscope", list(sys.argv[1:] if args is None else args)
        variable = complete_var or COMPLETE
        if request := os.environ.get(variable):
            sys.exit(shell_complete(self, extra, name, variable, request))
        try:
            with self.make_context(name, words, **extra) as context:
                self.invoke(context)
            sys.stdout.flush()  # here, where a closed pipe or a full disk can still be reported
            code = 0
        except IsoscopeError as error:
            code = _print_error(error.with_flags(), error.code)
        except click.exceptions.Exit as end:
            code = end.exit_code
        except click.exceptions.NoArgsIsHelpError as error:
            with suppress(OSError):
                error.show()  # the help page, on stderr
            code = CANNOT
        except click.ClickException as error:
            code = _print_error(_usage(error), CANNOT)
        except (KeyboardInterrupt, click.Abort):
            code = _print_error("interrupted", INTERRUPTED)
        except OSError as error:
            code = _exit_code(error)
        sys.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help page; other packages' come last."""
        for name in others():
            if name not in self.commands:
                self.add_command(_command_of(name))
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; other packages are looked through where it is none of ours."""
        if cmd_name in FAMILIES:
            return _family(self, cmd_name)
        if cmd_name not in self.commands:
            self.list_commands(ctx)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List all commands; those of two words that begin alike are one line."""
        words = dict.fromkeys(name.partition(" ")[0] for name in self.list_commands(ctx))
        found = {word: self.get_command(ctx, word) for word in words}
        named = {word: each for word, each in found.items() if each is not None}
        InOrder(commands=named).format_commands(ctx, formatter)


class InOrder(click.Group):
    """A group whose commands are listed in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return list(self.commands)


def _family(commands: click.Group, name: str) -> click.Group:
    """Return the commands of two words that begin with this one, by their second word."""
    words = " and ".join(f"{name} {second}" for second in FAMILIES[name])
    found = InOrder(name, help=f"The commands {words}.")
    for second in FAMILIES[name]:
        found.add_command(commands.commands[f"{name} {second}"], second)
    return found


def _command_of(name: str) -> SpecCommand:
    """Return the command of an experiment; one that cannot be loaded says so when it runs."""
    try:
        found = find_experiment(name)
    except IsoscopeError as error:
        return SpecCommand(name, help=f"({error.problem})")
    return SpecCommand(name, help=cleandoc(found.help), epilog=epilog(found.examples))


def _print_version(context: click.Context, _flag: click.Parameter, is_set: bool) -> None:
    if is_set:
        from isoscope.store.origin import versions

        click.echo(f"isoscope {versions()['isoscope']}")
        context.exit()


def _print_completion(context: click.Context, _flag: click.Parameter, shell: str) -> None:
    if shell:
        kind = get_completion_class(shell)
        assert kind is not None
        click.echo(kind(app, {}, "isoscope", COMPLETE).source())
        context.exit()


@click.group(
    cls=Commands,
    epilog=epilog(EXAMPLES),
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 96,
        "show_default": True,
    },
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.option(
    "--show-completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    metavar="SHELL",
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print a script that completes commands in bash, zsh or fish.",
)
@click.pass_context
def app(context: click.Context) -> None:
    """Measure the anisotropy of vectors: one pass, any size, every number with an interval.

    Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 a gate tripped,
    2 the command cannot be done.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(CANNOT)


_FIRST = ("measure", "survey")
_OWN = {
    "merge": runs.merge,
    "read": runs.read,
    "report": runs.report,
    "figure": runs.figure,
    "compare": runs.compare,
    "check": runs.check,
    "list": listing.list_names,
    "help": helping.explain_topic,
}
# In the order of the help page: experiments other than the first two stand before `list`.
for _name in dict.fromkeys((*_FIRST, *list(_OWN)[:-2], *BUILT_IN, "list", "help")):
    if _name in BUILT_IN:
        app.add_command(_command_of(_name))
    else:
        _examples = epilog((runs.EXAMPLES | listing.EXAMPLES | helping.EXAMPLES)[_name])
        app.command(_name, epilog=_examples)(_OWN[_name])
app.add_command(demo.DemoCommand("demo", help=getdoc(demo.demo), epilog=epilog(demo.EXAMPLES)))


def main() -> None:
    """Run `isoscope`."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A name that the terminal's encoding cannot show is no reason to lose a table.
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # pyright: ignore
    # Threads of NumPy's linear algebra that wait would spin for a tenth of a second, on a core
    # that others need: a fifth of the time of a small measurement. It is read at import.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # Schedulers end jobs so; leaving by an exception lets half-written folders be removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    ending = Ending()
    if _is_whole_process() and "coverage" not in sys.modules:
        atexit.register(ending.leave)  # before any other, so that it is called after them
        collector.rest()
    try:
        app(prog_name="isoscope")
    except SystemExit as end:
        ending.code = end.code
        raise
    except Exception:  # a bug; Python would leave with 1, which says that a gate tripped
        import traceback

        with suppress(OSError, ValueError, AttributeError):
            traceback.print_exc()
        sys.exit(CANNOT)
    finally:
        for stream in (sys.stdout, sys.stderr):
            _discard_unwritable(stream)


class Ending:
    """The end of a process that is this command and nothing else.

    Python takes itself apart before it leaves, module by module: a tenth of what a small
    measurement takes. The system does all of that at once.
    """

    def __init__(self) -> None:
        self.code: object = None  # None: it ends otherwise

    def leave(self) -> None:
        """Leave with the code, where output has been written; else Python does."""
        if not isinstance(self.code, int):
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        except (OSError, ValueError, AttributeError):
            return
        os._exit(self.code)


def _is_whole_process() -> bool:
    """Whether the process is `isoscope` or `python -m isoscope`, not another program."""
    program = Path(sys.argv[0])
    return program.stem == "isoscope" or program.parts[-2:] == ("isoscope", "__main__.py")


def _open_closed_streams() -> None:
    """Give a program that was started without stdout or stderr ones that lead nowhere.

    Otherwise the next file that is opened would take their number, and what a library prints
    would end up in it.
    """
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            empty = os.open(os.devnull, os.O_WRONLY)
            if empty != number:
                os.dup2(empty, number)
            setattr(sys, name, os.fdopen(number, "w"))


def _print_error(text: str, code: int) -> int:
    """Print an error to stderr, if that can be written to, and return its exit code."""
    with suppress(OSError, ValueError, AttributeError):  # full, closed, or not there at all
        click.echo(f"error: {text}", err=True)
        sys.stderr.flush()
        return code
    _discard(sys.stderr)
    return code


def _discard(stream: TextIO | None) -> None:
    """Send a stream nowhere, or Python would try the rest at exit, and leave with 120."""
    with suppress(OSError, ValueError, AttributeError):
        assert stream is not None
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _usage(error: click.ClickException) -> str:
    """Return what is wrong with a command line, in the shape of our own errors."""
    problem, _, meant = error.format_message().partition(" Did you mean ")
    for tail in (" (Possible options", " (Did you mean"):
        problem = problem.partition(tail)[0].rstrip(".")
    problem = problem.replace("No such command", "no command is called")
    if problem.startswith("No such option"):
        problem = f"no option is called {getattr(error, 'option_name', '')!r}"
    near = [repr(name) for name in getattr(error, "possibilities", None) or ()]
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "isoscope"
    hint = f"did you mean {meant or near[0] + '?'}" if meant or near else f"see {path} --help"
    return error_text(f"{problem[:1].lower()}{problem[1:]}", hint, "usage")


def _discard_unwritable(stream: TextIO | None) -> None:
    try:
        if stream is not None:
            stream.flush()
    except (OSError, ValueError):
        _discard(stream)


def _exit_code(error: OSError) -> int:
    """Return the exit code: a closed pipe is no error, a full disk is one of the user's."""
    if error.errno not in {errno.EPIPE, *FULL}:
        raise error
    for stream in (sys.stdout, sys.stderr):
        _discard_unwritable(stream)
    if error.errno == errno.EPIPE:
        return 0
    problem = f"cannot write the output: {error.strerror}"
    hint = "free some space, or write somewhere else"
    return _print_error(error_text(problem, hint, "disk-full"), CANNOT)
