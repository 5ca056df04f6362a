"""isoscope demo: a generated collection with a planted cone, measured."""

from isoscope.cli.output import AsJson, Quiet, chosen, show
from isoscope.cli.progress import progress

NAME = "demo"
EXAMPLES = """\b
Examples:
  isoscope demo
  isoscope demo --json
"""


def command(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Measure a generated collection with a planted cone."""
    style = chosen(json=as_json)
    from isoscope import verbs

    with progress(quiet=quiet) as tick:
        readings = verbs.demo(progress=tick)
    show(readings, style, quiet=quiet)
