"""isoscope merge: runs of parts added up to the run of the whole."""

from pathlib import Path
from typing import Annotated

from isoscope.cli.config import ConfigFile
from isoscope.cli.flags import AsJson, Quiet, Runs, output, overwrite
from isoscope.cli.output import note, show

NAME = "merge"
EXAMPLES = (
    "isoscope merge runs/a runs/b -o runs/whole",
    "isoscope merge runs/a runs/b -o runs/whole --overwrite --json",
)


def command(
    runs: Runs,
    whole: Annotated[Path, output("RUN", "The new run folder.")],
    replace: Annotated[bool, overwrite("run folder")] = False,
    as_json: AsJson = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Add up runs that were measured apart.

    The numbers are those of all their rows together. Runs add up when they were measured
    with the same settings and seed, on rows of one width and type, and no source is in
    two of them.
    """
    from isoscope import api

    found = api.merge(runs, whole, overwrite=replace)
    show(found, "json" if as_json else "", quiet=quiet)
    note(f"saved {whole}", quiet=quiet)
