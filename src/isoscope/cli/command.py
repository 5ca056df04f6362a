"""Commands derived from specs: arguments, flags, defaults and help of an experiment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand

from isoscope.cli.config import NULLS, ConfigFile
from isoscope.cli.flags import Command, Quiet, flag, formats, replace
from isoscope.cli.output import note, progress, show

if TYPE_CHECKING:
    import inspect

    from typer._click import core
    from typer._click.formatting import HelpFormatter

    from isoscope.study.experiment import Experiment
    from isoscope.study.option import Option

LARGE = 2**53  # bounds beyond it keep numbers representable; nobody meets them


class PlainCommand(TyperCommand):
    """A command whose help shows arguments as a user types them: no braces, no brackets."""

    def collect_usage_pieces(self, ctx: "core.Context") -> list[str]:
        """Return the parts of the usage line after the command's name."""
        return [
            piece.replace("{", "").replace("}", "").replace("[[", "[").replace("]]", "]")
            for piece in super().collect_usage_pieces(ctx)
        ]

    def format_options(self, ctx: "core.Context", formatter: "HelpFormatter") -> None:
        """Write arguments, then options."""
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            shown = [p for p in self.get_params(ctx) if p.param_type_name == kind]
            records = [record for each in shown if (record := self.record(each, ctx))]
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def record(
        self, parameter: "core.Parameter", ctx: "core.Context"
    ) -> tuple[str, str] | None:
        """Return the names and the help of a parameter; None where it is hidden."""
        found = parameter.get_help_record(ctx)
        if found is None or parameter.param_type_name != "argument":
            return found
        return found[0].partition(" <")[0], found[1]


class SpecCommand(PlainCommand):
    """The command of an experiment: its spec is imported when the flags are needed."""

    @cached_property
    def options(self) -> "dict[str, Option]":
        """The options among its flags, by name."""
        return {option.name: option for option in self.describe()}

    @cached_property
    def _built(self) -> "core.Command":
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(self.name)(self.build())
        return typer.main.get_command(alone)

    def record(
        self, parameter: "core.Parameter", ctx: "core.Context"
    ) -> tuple[str, str] | None:
        """Return the names and the help of a parameter, with defaults and bounds."""
        found = super().record(parameter, ctx)
        option = self.options.get(parameter.name or "")
        if found is None or option is None:
            return found
        return found[0], option.about.help + extra_text(option)

    @property
    def params(self) -> "list[core.Parameter]":
        """The arguments and flags."""
        return self._built.params

    @params.setter
    def params(self, _none: "list[core.Parameter]") -> None:  # pyright: ignore
        """Take no parameters from typer: they are not known yet."""

    @property
    def callback(self) -> Callable[..., object] | None:
        """The function behind the command."""
        return self._built.callback

    @callback.setter
    def callback(self, _none: object) -> None:
        """Take no function from typer."""

    @cached_property
    def experiment(self) -> "Experiment":
        """The experiment of this name."""
        from isoscope.study.experiment import find_experiment

        return find_experiment(str(self.name))

    def describe(self) -> "Iterable[Option]":
        """Return the options of the spec and of where it runs, in the order of help."""
        from isoscope.study.option import named_options

        own = list(self.experiment.spec.options().values())
        where = list(named_options(self.experiment.where).values())
        arguments = [option for option in own if option.about.argument]
        inputs = {option.path[0] for option in arguments}
        first = [option for option in where if option.name == "output"]
        opening = [
            option for option in own if len(option.path) > 1 and option.path[0] in inputs
        ]
        ordered = [*arguments, *first, *(each for each in own if each not in opening)]
        return {each.name: each for each in [*ordered, *opening, *where]}.values()

    def build(self) -> Command:
        """Return a function that runs the experiment and prints its results."""

        def command(
            context: typer.Context,
            options: dict[str, object],
            style: str,
            config: ConfigFile = None,
            quiet: Quiet = False,
        ) -> None:
            nulls: list[str] = context.meta.get(NULLS, [])
            values = {name: None for name in nulls if options[name] is None} | set_options(
                options
            )
            run(self.experiment, values, style, quiet)

        return formats(with_options(command, self.options.values()))


def run(
    experiment: "Experiment", options: Mapping[str, object], style: str, quiet: bool
) -> None:
    """Do an experiment and print what it found."""
    from isoscope.display import Results
    from isoscope.engine.heap import give_back
    from isoscope.study.reads import refuse_not_finite

    if experiment.blocks is not None:
        give_back(experiment.blocks)
    with progress(quiet=quiet, noun=experiment.noun) as tick:
        results = experiment.function(
            **options, progress=tick, say=lambda text: note(text, quiet=quiet)
        )
    if not isinstance(results, Results):
        raise TypeError(f"expected Results of {experiment.name}, got {type(results).__name__}")
    show(results, style, quiet=quiet)
    if options.get("output") is not None:
        note(f"saved {options['output']}", quiet=quiet)
    refuse_not_finite(results)


def set_options(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options that are set; the spec has defaults for the others."""
    return {
        name: each for name, each in options.items() if each is not None and each is not False
    }


def with_options(command: Command, options: "Iterable[Option]") -> Command:
    """Give a command a flag per option in place of its parameter `options`."""
    flags = [parameter(option) for option in options]

    def run(**values: object) -> None:
        command(options={each.name: values.pop(each.name) for each in flags}, **values)

    return replace(run, command, "options", flags)


def parameter(option: "Option") -> "inspect.Parameter":
    """Return an option as typer reads it; its bounds and words are the spec's to check."""
    about = option.about
    if about.argument:
        info = typer.Argument(metavar=about.metavar, help=about.help, show_default=False)
    else:
        names = about.flag.split("/") if about.flag else [f"--{option.flag}"]
        metavar = about.metavar or None
        info = typer.Option(*names, metavar=metavar, help=about.help, show_default=False)
    if option.plain is bool:
        if option.default is not False:
            raise TypeError(f"expected {option.name} to be off by default: it is a switch")
        return flag(option.name, Annotated[bool, info], False)
    one = option.plain if option.plain in (int, float) and not about.commas else str
    kind = list[one] if option.many and not about.commas else one
    if option.required:
        return flag(option.name, Annotated[kind, info])
    return flag(option.name, Annotated[kind | None, info], None)


def default_text(option: "Option") -> str:
    """Return how the default is shown; "" where there is none to speak of."""
    if option.about.default:
        return option.about.default
    if option.required or option.default is None or option.default is False:
        return ""
    if isinstance(option.default, tuple):
        words = (f"{e:g}" if isinstance(e, float) else str(e) for e in option.default)
        return ("," if option.about.commas else ", ").join(words)
    return str(option.default)


def bounds_text(option: "Option") -> str:
    """Return the bounds of a number, such as `x>=1`; "" where there are none."""
    least, most = option.about.least, option.about.most
    low = "" if least is None else f"{_number(option, least)}"
    high = "" if most is None or most >= LARGE else f"{_number(option, most)}"
    if low and high:
        return f"{low}<=x<={high}"
    return f"x>={low}" if low else f"x<={high}" if high else ""


def extra_text(option: "Option") -> str:
    """Return what stands in brackets behind the help line."""
    default = default_text(option)
    parts = [f"default: {default}" if default else "", bounds_text(option)]
    parts += ["required"] if option.required else []
    text = "; ".join(part for part in parts if part)
    return f"  [{text}]" if text else ""


def epilog(examples: Sequence[str]) -> str:
    """Return examples as they stand below a help page."""
    return "\b\nExamples:\n" + "".join(f"  {line}\n" for line in examples) if examples else ""


def _number(option: "Option", value: float) -> float | int:
    return int(value) if option.plain is int else float(value)
