"""isoscope demo: every layer of a real model, surveyed over the bundled text."""

from isoscope.cli.output import AsJson, Quiet, chosen, note, show
from isoscope.cli.progress import progress

NAME = "demo"
EXAMPLES = """\b
Examples:
  isoscope demo
  isoscope demo --quiet
"""


def command(as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Survey a real model over the bundled text.

    Without the demo extra, which brings the model, a planted cone is measured.
    """
    style = chosen(json=as_json)
    from isoscope import verbs

    with progress(quiet=quiet, noun="tokens") as tick:
        readings = verbs.demo(progress=tick, say=lambda text: note(text, quiet=quiet))
    show(readings, style, quiet=quiet)
