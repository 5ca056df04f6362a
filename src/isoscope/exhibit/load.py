"""The verb that reads a run back: one that shows itself in a notebook."""

import os
from typing import TYPE_CHECKING

from isoscope.store.run import Run

if TYPE_CHECKING:
    from isoscope.display import Results
    from isoscope.types import Reading


class ShownRun(Run):
    """A run whose readings are a table, and which shows itself as rich HTML."""

    readings: "Results[Reading]"

    def _repr_html_(self) -> str:
        from isoscope.display.escape import for_html
        from isoscope.exhibit.exhibit import facts_of

        facts = "".join(
            f"<tr><th style='text-align:left'>{for_html(name)}</th>"
            f"<td style='text-align:left'>{for_html(text)}</td></tr>"
            for name, text in facts_of(self).items()
        )
        table = self.readings._repr_html_()  # pyright: ignore[reportPrivateUsage]
        return f"<table>{facts}</table>{table}"


def load(path: str | os.PathLike[str]) -> ShownRun:
    """Read a run folder; its readings and itself display as tables."""
    from isoscope.display import READINGS, Results
    from isoscope.store import load as load_run
    from isoscope.study.reads import isotropic_levels, options_of

    found = load_run(path)
    levels = isotropic_levels(found.readings, options_of(found.settings))
    readings = Results(found.readings, READINGS, left_out=found.left_out, isotropic=levels)
    return ShownRun(found.path, found.manifest, found.origin, readings)
