"""Commands on run folders: isoscope merge, read, explain and dimensions."""

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
    Variant,
    formats,
    output,
    overwrite,
)
from isoscope.cli.output import note, progress, show

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
    "explain": ("isoscope explain runs/a", "isoscope explain runs/a -s rows --json"),
    "dimensions": ("isoscope dimensions runs/a", "isoscope dimensions runs/a -s rows --json"),
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


@formats
def explain(run: Run, sites: Sites = None, variant: Variant = "all", style: str = "") -> None:
    """Print how much of the mean cosine each cause accounts for.

    Always in this order: sink tokens, a few dimensions, token frequency, position, and the
    rest, the mean that all rows share. Where causes overlap, the earlier one gets the share.
    """
    from isoscope import api

    show(api.explain(run, sites=sites or None, variant=variant), style)


@formats
def dimensions(
    run: Run,
    sites: Sites = None,
    variant: Variant = "all",
    style: str = "",
    quiet: Quiet = False,
) -> None:
    """Print which dimensions carry the mean cosine of each site.

    Also the kurtosis of the first one (0 for a Gaussian), and r squared: how well the cosines
    without the top 1, 3 and 5 dimensions predict those of whole vectors.
    """
    from isoscope import api

    with progress(quiet=quiet, noun="sites") as tick:
        found = api.dimensions(run, sites=sites or None, variant=variant, progress=tick)
    show(found, style, quiet=quiet)
