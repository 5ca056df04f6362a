"""isoscope compare: two runs side by side, and what changed for more than noise."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.flags import Variant, formats, measure, site
from isoscope.cli.output import show

EXAMPLES = (
    "isoscope compare runs/a runs/b",
    "isoscope compare runs/a runs/b -m mean-cosine -m isoscore --markdown",
    "isoscope compare vectors.npy other.npy",
)


@formats
def compare(
    first: Annotated[
        Path,
        typer.Argument(metavar="A", help="A run folder written by -o, or a file of vectors."),
    ],
    second: Annotated[
        Path, typer.Argument(metavar="B", help="The run or file to compare with A.")
    ],
    names: Annotated[
        list[str] | None,
        measure("A measure; repeat it for more than one. Without it, the main ones."),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Compare all measures that both runs have.")
    ] = False,
    sites: Annotated[
        list[str] | None, site("A site of A; repeat it for more than one.")
    ] = None,
    variant: Variant = "all",
    match: Annotated[
        str,
        typer.Option(
            "--match", metavar="HOW", help="Match sites by name, or layers by relative depth."
        ),
    ] = "name",
    style: str = "",
) -> None:
    """Print two runs side by side, and what changed.

    The difference is b - a, with a 95 % interval. Where both read the same documents, it is
    paired by document group and far sharper. "changed" means significant at 5 % after
    Holm's correction over the rows.
    """
    from isoscope import api

    changes = api.compare(
        first,
        second,
        measures=names or None,
        sites=sites or None,
        variant=variant,
        match=match,
        all=all_,
    )
    show(changes, style)
