"""isoscope list: the measures, or the sites of a model."""

import sys
from collections.abc import Iterable
from dataclasses import asdict
from json import dumps
from typing import TYPE_CHECKING

import click

from isoscope.cli.flags import as_json
from isoscope.cli.output import note, show_table
from isoscope.errors import ConfigError
from isoscope.registry import unknown

if TYPE_CHECKING:
    from isoscope.display.table import Table

EXAMPLES = {
    "list": (
        "isoscope list measures",
        "isoscope list measures --json",
        "isoscope list sites models/minilm",
    ),
}
LATER = ("claims",)


@click.argument("what", metavar="WHAT", help="What to list: measures or sites.")
@click.argument(
    "model",
    metavar="[MODEL]",
    required=False,
    help="For sites: a folder, a GGUF file or a name.",
)
@click.option("--trust-remote-code", is_flag=True, help="Run code that comes with the model.")
@as_json
def list_names(what: str, model: str | None, trust_remote_code: bool, style: str) -> None:
    """List the measures, or the sites of a model."""
    if what == "sites":
        records, shown = _sites(model, trust_remote_code, quiet=bool(style))
    elif what == "measures":
        records, shown = _measures()
    elif what in LATER:
        raise ConfigError(
            f"cannot list {what} yet", hint="list measures instead", slug="list-later"
        )
    else:
        raise unknown("list", what, ("measures", "sites", *LATER))
    if style:
        sys.stdout.write("".join(dumps(each) + "\n" for each in records))
    else:
        show_table(shown)


def _sites(
    model: str | None, trust_remote_code: bool, *, quiet: bool
) -> "tuple[list[dict[str, object]], Table]":
    """Return the families of sites as records and as a table."""
    if model is None:
        raise ConfigError(
            "expected a model whose sites to list, got none",
            hint="isoscope list sites MODEL",
            slug="list-model",
        )
    from isoscope.display.table import Column, Table
    from isoscope.study.model import list_sites

    rows = list_sites(
        model, trust_remote_code=trust_remote_code, say=lambda text: note(text, quiet=quiet)
    )
    columns = (
        Column("family", tuple(row[0] for row in rows), words=True),
        Column("sites", tuple(f"{row[1]:,}" for row in rows)),
        Column("width", tuple(f"{row[2]:,}" if row[2] else "" for row in rows)),
    )
    keys = ("family", "sites", "width")
    return [dict(zip(keys, row, strict=True)) for row in rows], Table("", columns)


def _measures() -> "tuple[list[dict[str, object]], Table]":
    """Return the measures as records and as a table."""
    from isoscope.display.table import Column, Table
    from isoscope.study.measure_choice import describe_measures

    records = describe_measures()

    def cells(values: Iterable[float | str | None]) -> tuple[str, ...]:
        return tuple(f"{v:g}" if isinstance(v, float) else str(v or "") for v in values)

    columns = (
        Column("measure", cells(each.name for each in records), words=True),
        Column("isotropic", cells(each.isotropic for each in records)),
        Column("collapsed", cells(each.collapsed for each in records)),
        Column("passes", cells("two" if each.second_pass else "one" for each in records)),
        Column(
            "--as-published", cells("differs" if each.as_published else "" for each in records)
        ),
        Column("what", cells(each.title for each in records), words=True, fold=24),
    )
    return [asdict(each) for each in records], Table("", columns)
