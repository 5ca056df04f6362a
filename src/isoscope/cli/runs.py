"""Commands on run folders: isoscope merge and read."""

from pathlib import Path
from typing import Annotated

from isoscope.cli.config import ConfigFile
from isoscope.cli.flags import (
    AsJson,
    Measures,
    Quiet,
    Run,
    Runs,
    Sites,
    formats,
    output,
    overwrite,
)
from isoscope.cli.output import note, show

EXAMPLES = {
    "merge": (
        "isoscope merge runs/a runs/b -o runs/whole",
        "isoscope merge runs/a runs/b -o runs/whole --overwrite --json",
    ),
    "read": (
        "isoscope read runs/a",
        "isoscope read runs/a -m mean-cosine -m isoscore --latex",
        "isoscope read runs/a -s rows --json | head -n 1",
    ),
}


def merge(
    runs: Runs,
    whole: Annotated[Path, output("RUN", "The new run folder.")],
    replace: Annotated[bool, overwrite("run folder")] = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Merge runs of separate parts into one run.

    The numbers are those of all rows together. Runs can be merged when they were measured
    with the same settings and seed, on rows of one width and type, and no source occurs in
    two of them.
    """
    from isoscope import api

    found = api.merge(runs, whole, overwrite=replace)
    show(found, "json" if as_json else "", quiet=quiet)
    note(f"saved {whole}", quiet=quiet)


@formats
def read(run: Run, names: Measures = None, sites: Sites = None, style: str = "") -> None:
    """Print the readings of a run folder."""
    from isoscope import api

    show(api.read(run, measures=names or None, sites=sites or None), style)
