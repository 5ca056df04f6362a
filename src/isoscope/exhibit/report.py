"""The verb of pages: runs as one HTML file that needs no network."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isoscope.display.page.document import Page


def report(
    runs: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    overwrite: bool = False,
) -> "Page":
    """Make a page of one or several runs: folders, loaded runs, or readings.

    The page shows itself in a notebook; with `output` it is written to a file as well.
    """
    from isoscope.display.page.document import page
    from isoscope.display.page.runtime import needed
    from isoscope.display.page.write import check_file
    from isoscope.exhibit.exhibit import exhibits, sections
    from isoscope.measures import MEASURES

    needed("altair")
    if output is not None:
        check_file(output, overwrite=overwrite)
    notes = [measure.note for measure in MEASURES.values()]
    made = page(exhibits(runs), notes, sections())
    if output is not None:
        made.save(output, overwrite=overwrite)
    return made
