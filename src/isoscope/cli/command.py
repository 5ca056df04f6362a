"""Commands derived from specs: arguments, flags, defaults and help of an experiment."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isoscope.cli import collector
from isoscope.cli.config import NULLS, config_file
from isoscope.cli.flags import formats, quiet
from isoscope.cli.output import note, progress, show

if TYPE_CHECKING:
    from isoscope.study.experiment import Experiment
    from isoscope.study.option import Option

LARGE = 2**53  # bounds beyond it keep numbers representable; nobody meets them


@formats
@config_file
@quiet
def _shared() -> None:
    """Have the flags that all experiments have."""


class SpecCommand(click.Command):
    """The command of an experiment: its spec is imported when the flags are needed."""

    first: Sequence[click.Parameter] = ()
    last: Sequence[click.Parameter] = click.command(_shared).params

    def __init__(self, name: str, **rest: object) -> None:
        super().__init__(name, **rest)  # pyright: ignore
        del self.params  # made when they are needed

    @cached_property
    def params(self) -> list[click.Parameter]:  # pyright: ignore
        """The arguments and flags."""
        return [*self.first, *map(parameter, self.options.values()), *self.last]

    @cached_property
    def options(self) -> "dict[str, Option]":
        """The options among its flags, by name."""
        return {option.name: option for option in self.describe()}

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

    def invoke(self, ctx: click.Context) -> None:
        """Run the experiment and print its results."""
        options, nulls = set_options(ctx.params, self.options), ctx.meta.get(NULLS, ())
        values = {name: None for name in nulls if name not in options} | options
        run(self.experiment, values, ctx.params["style"], ctx.params["quiet"])


def set_options(values: Mapping[str, object], options: Iterable[str]) -> dict[str, object]:
    """Return the values of options that are set; the spec has defaults for the others."""
    named = {name: values[name] for name in options}
    return {
        name: value
        for name, value in named.items()
        if value is not None and value is not False and value != ()
    }


def run(
    experiment: "Experiment", options: Mapping[str, object], style: str, quiet: bool
) -> None:
    """Do an experiment and print what it found; of several alike processes only one does."""
    from isoscope.display import Results
    from isoscope.engine.choose import is_leader
    from isoscope.store.run import is_finished
    from isoscope.study.measure_choice import refuse_not_finite

    leads = is_leader(options.get("engine"))
    output = options.get("output")
    finished = output is not None and is_finished(Path(str(output)))
    finished = finished and not options.get("overwrite")
    results = _compute(experiment, options, quiet or not leads)
    if not leads:
        return
    if not isinstance(results, Results):
        raise TypeError(f"expected Results of {experiment.name}, got {type(results).__name__}")
    show(results, style, quiet=quiet)
    if output is not None and not finished:
        note(f"saved {output}", quiet=quiet)
    refuse_not_finite(results)


def _compute(experiment: "Experiment", options: Mapping[str, object], quiet: bool) -> object:
    """Do an experiment with a progress bar; an interrupt says what is kept."""
    from isoscope.engine.allocator import give_back

    if experiment.blocks:
        give_back(*experiment.blocks)
    collector.resume()
    try:
        with progress(quiet=quiet, noun=experiment.noun, first=experiment.first) as bar:
            return experiment.function(
                **options,
                progress=bar and bar.tick,
                status=bar and bar.watch,
                say=lambda text: note(text, quiet=quiet),
            )
    except KeyboardInterrupt:
        if (output := options.get("output")) is not None:
            note(_kept_in(Path(str(output))), quiet=False)
        raise


def _kept_in(folder: Path) -> str:
    """Return what an interrupted run has kept, and how it is resumed."""
    from isoscope.store.run import units_done

    known = units_done(folder)
    if known is None or not known[0]:
        return "no unit was finished: nothing was kept"
    done, total = known
    return f"{done} of {total} units are kept in {folder}; the same command resumes the run"


def parameter(option: "Option") -> click.Parameter:
    """Return an option as click reads it; its bounds and words are the spec's to check."""
    about, help = option.about, option.about.help + extra_text(option)
    kind = option.plain if option.plain in (int, float) and not about.commas else str
    several = option.many and not about.commas
    if about.argument:
        return click.Argument(
            [option.name],
            metavar=about.metavar,
            type=kind,
            nargs=-1 if several else 1,
            required=option.required,
            help=help,
        )
    names = [*(about.flag.split("/") if about.flag else [f"--{option.flag}"]), option.name]
    if option.plain is bool:
        if option.default is not False:
            raise TypeError(f"expected {option.name} to be off by default: it is a switch")
        return click.Option(names, is_flag=True, help=help)
    return click.Option(
        names,
        metavar=about.metavar or None,
        type=kind,
        multiple=several,
        required=option.required,
        help=help,
    )


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
    number = int if option.plain is int else float
    low = "" if least is None else f"{number(least)}"
    high = "" if most is None or most >= LARGE else f"{number(most)}"
    if low and high:
        return f"{low}<=x<={high}"
    return f"x>={low}" if low else f"x<={high}" if high else ""


def extra_text(option: "Option") -> str:
    """Return what stands in brackets behind the help line."""
    default = f"default: {shown}" if (shown := default_text(option)) else ""
    text = "; ".join(part for part in (default, bounds_text(option)) if part)
    return f"  [{text}]" if text else ""


def epilog(examples: Sequence[str]) -> str:
    """Return examples as they stand below a help page."""
    return "\b\nExamples:\n" + "".join(f"  {line}\n" for line in examples) if examples else ""
