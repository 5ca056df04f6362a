"""isoscope demo: every layer of a real model, surveyed over the bundled text."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from isoscope.cli.command import LazyCommand, given, with_options
from isoscope.cli.flags import AsJson, Command, Quiet, output, overwrite
from isoscope.cli.output import note, show
from isoscope.cli.progress import progress

if TYPE_CHECKING:
    from isoscope.study.option import Option

NAME = "demo"
EXAMPLES = ("isoscope demo", "isoscope demo -o demo.html --quiet")


class DemoCommand(LazyCommand):
    """A command with flags of its own, and those of where a survey runs."""

    def describe(self) -> "Iterable[Option]":
        """Return the options of where a survey runs."""
        from isoscope.study.execution import Place
        from isoscope.study.option import named_options

        return named_options(Place).values()

    def build(self) -> Command:
        """Return the function with all its flags."""
        return with_options(command, self.options.values())


def command(
    page: Annotated[Path | None, output("PAGE", "Also write a report, an HTML file.")] = None,
    replace: Annotated[bool, overwrite("report")] = False,
    options: Any = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Survey a real model over the bundled text.

    Without the demo extra, which brings the model, a planted cone is measured.
    """
    from isoscope import api

    with progress(quiet=quiet, noun="tokens") as tick:
        readings = api.demo(
            output=page,
            overwrite=replace,
            progress=tick,
            say=lambda text: note(text, quiet=quiet),
            **given(options),
        )
    show(readings, "json" if as_json else "", quiet=quiet)
    if page is not None:
        note(f"report: {page.resolve()}", quiet=False)
