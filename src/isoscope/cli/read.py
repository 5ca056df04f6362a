"""isoscope read: the readings of a run folder, as a table in any format."""

from isoscope.cli.flags import Measures, Run, Sites, formats
from isoscope.cli.output import show

NAME = "read"
EXAMPLES = (
    "isoscope read runs/a",
    "isoscope read runs/a -m mean-cosine -m isoscore --latex",
    "isoscope read runs/a -s rows --json | head -n 1",
)


@formats
def command(run: Run, names: Measures = None, sites: Sites = None, style: str = "") -> None:
    """Print the readings of a run folder."""
    from isoscope import api

    show(api.read(run, measures=names or None, sites=sites or None), style)
