"""What a sweep found, from the readings and the origin of its run."""

from collections.abc import Sequence

from isoscope.display import Results
from isoscope.lab.sweep.diverged import told
from isoscope.lab.sweep.layout import SWEEP_LINES
from isoscope.lab.sweep.summary import Line, compared, lines_of, was_learnt
from isoscope.store import Origin
from isoscope.types import Reading

NOT_LEARNT = (
    "not learnt: without penalty the task does not beat its baseline of {baseline:.3g} by two "
    "standard errors, so the differences say nothing about it"
)
ONE_SEED = "one seed: no intervals, and whether the task was learnt cannot be determined"


def sweeps_of(readings: Sequence[Reading], origin: Origin, model: str = "") -> Results[Line]:
    """Return one line per weight."""
    task, settings = origin.sweep()
    lines = lines_of(readings, task.metric)
    learnt = was_learnt(lines, task.baseline)
    gone = list(task.diverged)
    remarks = [
        *task.remarks,
        *([told(gone)] if gone else []),
        *([NOT_LEARNT.format(baseline=task.baseline)] if learnt is False else []),
        *([ONE_SEED] if learnt is None else compared(lines)),
    ]
    shared = {
        "model": model or (origin.model.model if origin.model is not None else ""),
        "task": task.name,
        "penalty": settings.penalty.name,
        "metric": task.metric,
        "baseline": task.baseline,
        "learnt": learnt,
        "diverged": gone,
        "steps": settings.steps,
        "seeds": len(settings.seeds),
    }
    return Results(lines, SWEEP_LINES, remarks=remarks, shared=shared)
