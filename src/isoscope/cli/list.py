"""isoscope list: the measures, the sites of a model, and later claims."""

import sys
from json import dumps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isoscope.cli.flags import AsJson, TrustRemoteCode
from isoscope.cli.output import show_table
from isoscope.errors import ConfigError

if TYPE_CHECKING:
    from isoscope.display.table import Table

NAME = "list"
EXAMPLES = (
    "isoscope list measures",
    "isoscope list measures --json",
    "isoscope list sites models/minilm",
)
LATER = ("claims",)


def command(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="measures or sites")],
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="Of sites: a folder, a GGUF file or a name."),
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
) -> None:
    """List the measures, or the sites of a model."""
    if what == "sites":
        _sites(model, trust_remote_code, as_json)
        return
    if what in LATER:
        raise ConfigError(
            f"cannot list {what} yet", hint="list measures instead", slug="list-later"
        )
    if what != "measures":
        from isoscope.registry import unknown

        raise unknown("list", what, ("measures", "sites", *LATER))
    from isoscope.measures import MEASURES

    records = [_record(measure) for measure in MEASURES.values()]
    if as_json:
        sys.stdout.write("".join(dumps(each) + "\n" for each in records))
    else:
        show_table(_table(records))


def _sites(model: str | None, trust_remote_code: bool, as_json: bool) -> None:
    if model is None:
        raise ConfigError(
            "expected a model whose sites to list, got none",
            hint="isoscope list sites MODEL",
            slug="list-model",
        )
    from isoscope.cli.output import note
    from isoscope.display.table import Column, Table
    from isoscope.study.model import list_sites

    rows = list_sites(
        model,
        trust_remote_code=trust_remote_code,
        say=lambda text: note(text, quiet=as_json),
    )
    if as_json:
        keys = ("family", "sites", "width")
        lines = (dumps(dict(zip(keys, row, strict=True))) + "\n" for row in rows)
        sys.stdout.write("".join(lines))
        return
    show_table(
        Table(
            "",
            (
                Column("family", tuple(row[0] for row in rows), words=True),
                Column("sites", tuple(f"{row[1]:,}" for row in rows)),
                Column("width", tuple(f"{row[2]:,}" if row[2] else "" for row in rows)),
            ),
        )
    )


def _record(measure: Any) -> dict[str, Any]:
    """What a script may want to know of a measure."""
    return {
        "name": measure.name,
        "title": measure.title,
        "default": bool(measure.default),
        "second_pass": bool(measure.second_pass),
        "isotropic": _limit(measure.isotropic),
        "collapsed": _limit(measure.collapsed),
        "unmoved_by": sorted(measure.unmoved_by),
        "formula": measure.note.formula,
        "misleads": measure.note.misleads,
        "cite": measure.cite,
    }


def _limit(of: Any) -> float | str | None:
    """A reference value with many rows: a number, or how it goes with the width d."""
    from isoscope.measures.base import level

    many, widths = 10**15, (512, 768)
    found = [number for width in widths if (number := level(of, many, width)) is not None]
    if not found:
        return None
    for words, scale in (("d", widths), ("1/d", [1 / width for width in widths])):
        if all(abs(a / b - 1) < 1e-3 for a, b in zip(found, scale, strict=True)):
            return words
    return round(found[0], 3) + 0.0 if abs(found[0] - found[1]) < 1e-5 else "varies with d"


def _table(records: list[dict[str, Any]]) -> "Table":
    from isoscope.display.table import Column, Table

    def cells(key: str) -> tuple[str, ...]:
        values = (each[key] for each in records)
        return tuple(f"{v:g}" if isinstance(v, float) else str(v or "") for v in values)

    second = tuple("two" if each["second_pass"] else "one" for each in records)
    columns = (
        Column("measure", cells("name"), words=True),
        Column("isotropic", cells("isotropic")),
        Column("collapsed", cells("collapsed")),
        Column("passes", second),
        Column("what", cells("title"), words=True, fold=24),
    )
    return Table("", columns)
