"""isoscope demo: every layer of a real model, surveyed over the bundled text."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from isoscope.cli.command import SpecCommand, set_options
from isoscope.cli.flags import as_json, output, overwrite, quiet
from isoscope.cli.output import note, progress, show

if TYPE_CHECKING:
    from isoscope.study.option import Option

EXAMPLES = ("isoscope demo", "isoscope demo -o demo.html --quiet")


@output("PAGE", "Also write a report, an HTML file.", required=False)
@overwrite("report")
@as_json
@quiet
def demo() -> None:
    """Survey a real model over the bundled text.

    Without the demo extra, which brings the model, a planted cone is measured.
    """


class DemoCommand(SpecCommand):
    """A command with flags of its own, and those of where a survey runs."""

    own = click.command(demo).params
    first, last = own[:2], own[2:]

    def describe(self) -> "Iterable[Option]":
        """Return the options of where a survey runs."""
        from isoscope.study.option import named_options
        from isoscope.study.spec import EngineOptions

        return named_options(EngineOptions).values()

    def invoke(self, ctx: click.Context) -> None:
        """Run the demonstration and print its readings."""
        from isoscope import api
        from isoscope.study.keywords import execution_of

        where = set_options(ctx.params, self.options)
        execution_of(where)  # which checks them before a model is looked for
        page, quiet = ctx.params["target"], ctx.params["quiet"]
        with progress(quiet=quiet, noun="tokens", first="loading model") as bar:
            readings = api.demo(
                output=page,
                overwrite=ctx.params["overwrite"],
                progress=bar and bar.tick,
                status=bar and bar.watch,
                say=lambda text: note(text, quiet=quiet),
                **where,
            )
        show(readings, ctx.params["style"], quiet=quiet)
        if page is not None:
            note(f"report: {page.resolve()}", quiet=False)
