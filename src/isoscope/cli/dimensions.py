"""isoscope dimensions: the few dimensions that carry the mean cosine of each site of a run."""

from isoscope.cli.flags import Quiet, Run, Sites, Variant, formats
from isoscope.cli.output import show
from isoscope.cli.progress import progress

NAME = "dimensions"
EXAMPLES = ("isoscope dimensions runs/a", "isoscope dimensions runs/a -s rows --json")


@formats
def command(
    run: Run,
    sites: Sites = None,
    variant: Variant = "all",
    style: str = "",
    quiet: Quiet = False,
) -> None:
    """Print which dimensions carry the mean cosine of each site.

    With the kurtosis of the first (0 for a Gaussian), and r squared: how much of the cosines
    of whole vectors is left when the top 1, 3 and 5 dimensions are taken out.
    """
    from isoscope import api

    with progress(quiet=quiet, noun="sites") as tick:
        found = api.dimensions(run, sites=sites or None, variant=variant, progress=tick)
    show(found, style, quiet=quiet)
