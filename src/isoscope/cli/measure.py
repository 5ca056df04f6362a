"""isoscope measure: the anisotropy of vectors already on disk."""

from pathlib import Path
from typing import Annotated

import typer

from isoscope.cli.config import ConfigFile
from isoscope.cli.output import AsCsv, AsJson, AsLatex, AsMarkdown, Quiet, chosen, note, show
from isoscope.cli.progress import progress

NAME = "measure"
EXAMPLES = """\b
Examples:
  isoscope measure vectors.npy
  isoscope measure vectors.npy -m mean-cosine -m isoscore-debiased --json
  isoscope measure vectors.npy --all -o runs/vectors
  cat vectors.npy | isoscope measure - --name vectors --csv
"""


def command(
    vectors: Annotated[
        str,
        typer.Argument(
            metavar="VECTORS",
            help="npy, npz, safetensors, parquet, arrow, jsonl or csv; a folder of them; - for "
            "stdin.",
        ),
    ],
    names: Annotated[
        list[str] | None,
        typer.Option(
            "-m", "--measure", metavar="NAME", help="A measure; repeat it for more than one."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also the measures that need a second pass.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="RUN", help="Save a run folder.")
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(metavar="C", help="The column, array or tensor that holds the vectors."),
    ] = None,
    document: Annotated[
        str | None,
        typer.Option(
            metavar="C", help="The column that says which document a row is from; sorted by it."
        ),
    ] = None,
    identity: Annotated[
        str | None, typer.Option("--id", metavar="C", help="The column of row ids.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="C", help="The column of the rows' texts.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="A name for the source  [default: its file's name]"),
    ] = None,
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", help="Drop and count rows that hold NaN or infinity."),
    ] = False,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published", help="Compute as the papers did, where ours differs on purpose."
        ),
    ] = False,
    zeta: Annotated[
        float,
        typer.Option(
            min=0.0, max=1.0, metavar="Z", show_default=True, help="Shrinkage of isoscore-star."
        ),
    ] = 0.2,
    seed: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", show_default=True, help="Chooses halves, groups and samples."
        ),
    ] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run folder if there is one.")
    ] = False,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_latex: AsLatex = False,
    as_markdown: AsMarkdown = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
) -> None:
    """Measure how anisotropic the vectors in VECTORS are."""
    style = chosen(json=as_json, csv=as_csv, latex=as_latex, markdown=as_markdown)
    from isoscope import verbs
    from isoscope.cli.memory import give_back

    give_back()
    with progress(quiet=quiet) as tick:
        readings = verbs.measure(
            vectors,
            measures=names or None,
            all=every,
            output=output,
            column=column,
            document=document,
            id=identity,
            text=text,
            name=name,
            skip_bad=skip_bad,
            as_published=as_published,
            zeta=zeta,
            seed=seed,
            overwrite=overwrite,
            progress=tick,
        )
    show(readings, style, quiet=quiet)
    if output is not None:
        note(f"saved {output}", quiet=quiet)
