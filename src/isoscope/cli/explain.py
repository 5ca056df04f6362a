"""isoscope explain: why each site of a run is anisotropic."""

from isoscope.cli.flags import Run, Sites, Variant, formats
from isoscope.cli.output import show

NAME = "explain"
EXAMPLES = ("isoscope explain runs/a", "isoscope explain runs/a -s rows --json")


@formats
def command(run: Run, sites: Sites = None, variant: Variant = "all", style: str = "") -> None:
    """Print how much of the mean cosine is owed to which cause.

    In this order, always: sink tokens, a few dimensions, token frequency, position, and
    what is left, the mean that all rows share. Where causes overlap, the earlier one has it.
    """
    from isoscope.lab.explain.results import explain

    show(explain(run, sites=sites or None, variant=variant), style)
