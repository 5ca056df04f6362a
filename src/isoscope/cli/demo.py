"""isoscope demo: every layer of a real model, surveyed over the bundled text."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from isoscope.cli.command import SpecCommand, set_options, with_options
from isoscope.cli.flags import AsJson, Command, Quiet, output, overwrite
from isoscope.cli.output import note, progress, show

if TYPE_CHECKING:
    from isoscope.study.option import Option

EXAMPLES = ("isoscope demo", "isoscope demo -o demo.html --quiet")


class DemoCommand(SpecCommand):
    """A command with flags of its own, and those of where a survey runs."""

    def describe(self) -> "Iterable[Option]":
        """Return the options of where a survey runs."""
        from isoscope.study.option import named_options
        from isoscope.study.spec import EngineOptions

        return named_options(EngineOptions).values()

    def build(self) -> Command:
        """Return the function with all its flags."""
        return with_options(demo, self.options.values())


def demo(
    page: Annotated[Path | None, output("PAGE", "Also write a report, an HTML file.")] = None,
    replace: Annotated[bool, overwrite("report")] = False,
    options: dict[str, object] | None = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Survey a real model over the bundled text.

    Without the demo extra, which brings the model, a planted cone is measured.
    """
    from isoscope import api
    from isoscope.study.keywords import execution_of

    where = execution_of(set_options(options or {}))

    with progress(quiet=quiet, noun="tokens") as tick:
        readings = api.demo(
            output=page,
            overwrite=replace,
            progress=tick,
            say=lambda text: note(text, quiet=quiet),
            engine=where.engine,
            workers=where.workers,
        )
    show(readings, "json" if as_json else "", quiet=quiet)
    if page is not None:
        note(f"report: {page.resolve()}", quiet=False)
