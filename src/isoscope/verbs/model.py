"""The verb of models: survey, every site of a model over a corpus, once."""

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from isoscope.errors import (
    IsoscopeError,
    RowError,
    SourceError,
    TooFewRowsError,
)
from isoscope.verbs.answer import answered_places, checked_seed, chosen
from isoscope.verbs.target import aside, positive, target_of, within, working
from isoscope.verbs.vectors import spelt

if TYPE_CHECKING:
    from isoscope.capture.model.loaded import Loaded
    from isoscope.capture.sites import Sites
    from isoscope.report import Results
    from isoscope.types import Reading
    from isoscope.verbs.study import Study

TOKENS = 100_000
Progress = Callable[[int, int | None], None]  # tokens done, tokens in all where that is known
Say = Callable[[str], None]


@dataclass(frozen=True)
class Found:
    """The sites of a model, and the model."""

    loaded: "Loaded"
    sites: "Sites"


def opened(
    model: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    device: str = "cpu",
    device_map: str | None = None,
    trust_remote_code: bool = False,
    untrained: bool = False,
    seed: int = 0,
    say: Say | None = None,
) -> Found:
    """Load a model and find its sites."""
    needs_torch()
    import torch

    from isoscope.capture.feed import sample_inputs
    from isoscope.capture.model.load import load
    from isoscope.capture.sites import Sites

    loaded = load(
        model,
        dtype=dtype,
        device=device,
        device_map=device_map,
        trust_remote_code=trust_remote_code,
        untrained=untrained,
        seed=seed,
        say=say,
    )
    inputs = sample_inputs(loaded)

    def run() -> None:
        with torch.inference_mode():
            loaded.body(**inputs)

    return Found(loaded, Sites.found(loaded.model, loaded.body, run))


def sites(model: str | os.PathLike[str], **given: Any) -> list[tuple[str, int, int]]:
    """Return the sites of a model as (family, how many, width)."""
    found = opened(model, **given)
    from isoscope.capture.sites import outline

    rows = outline(found.sites)
    if found.loaded.pooling is not None:
        rows.append(("pooled", 1, _pooled_width(found.loaded)))
    return rows


def _pooled_width(loaded: "Loaded") -> int:
    import torch

    from isoscope.capture.feed import sample_inputs
    from isoscope.capture.tap import first_tensor

    with torch.inference_mode():
        states = first_tensor(loaded.body(**sample_inputs(loaded)))
    assert states is not None and loaded.pooling is not None
    everywhere = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    return int(loaded.pooling.pooled(states, everywhere).shape[1])


def survey(
    model: str | os.PathLike[str],
    corpus: str | os.PathLike[str] | Sequence[str] | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    sites: Sequence[str] | None = None,
    measures: Sequence[str] | None = None,
    all: bool = False,
    tokens: int | None = TOKENS,
    length: int = 512,
    batch: int = 32,
    unit: int | None = None,
    column: str | None = None,
    target: str | None = None,
    id: str | None = None,
    per: Any = None,
    kind: str | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    device_map: str | None = None,
    trust_remote_code: bool = False,
    untrained: bool = False,
    pooling: str | None = None,
    prompt: str | None = None,
    truncate_dim: int | None = None,
    sinks: float = 10.0,
    turns: int | None = None,
    frequencies: str | os.PathLike[str] | None = None,
    skip_bad: bool = False,
    as_published: bool = False,
    zeta: float = 0.2,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
    say: Say | None = None,
) -> "Results[Reading]":
    """Run a model over a corpus and read every site; activations are never kept.

    With `output` a run folder is written; one that was begun with the same arguments and
    not finished is gone on with.
    """
    given = dict(locals())
    from isoscope.verbs.plan import has_tokens
    from isoscope.verbs.study import Study

    chosen(measures, all=all, text=True)  # what is misspelt is told before a model is loaded
    checked_seed(seed)
    positive("tokens", tokens)
    positive("length", length, least=2)
    positive("batch", batch)
    positive("unit", unit)
    positive("turns", turns)
    positive("truncate-dim", truncate_dim)
    within("sinks", sinks, 1.0, float("inf"))
    within("zeta", zeta, 0.0, 1.0)
    target_folder = target_of(output, overwrite)
    found = opened(
        model,
        dtype=dtype,
        device=device,
        device_map=device_map,
        trust_remote_code=trust_remote_code,
        untrained=untrained,
        seed=seed,
        say=say,
    )
    names = chosen(measures, all=all, text=has_tokens(found))
    with TemporaryDirectory(prefix="isoscope-") as spare:
        folder = working(target_folder) or Path(spare) / "run"
        study = Study.planned(found, folder, names, given)
        state = _done(study, overwrite)
        name = target_folder.name if target_folder else found.loaded.name
        try:
            readings = answered_places(state, names, name, study.options, study.sites)
        except (RowError, TooFewRowsError):  # as it would be every time: nothing to go on with
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if target_folder is not None:
            given["tokens"] = tokens or study.selection.rows
            study.saved(target_folder, state, readings, _config(given), overwrite)
            shutil.rmtree(aside(target_folder), ignore_errors=True)
    readings.remarks = tuple(study.remarks)
    return readings


def _done(study: "Study", overwrite: bool) -> Path:
    """Do a study; leave no folder behind if not one unit of it could be done."""
    fresh = not study.folder.exists()
    try:
        return study.done()
    except IsoscopeError as error:
        if error.slug == "resume-other" and overwrite:
            shutil.rmtree(study.folder)
            return study.done()
        if fresh and not any(study.folder.glob("units/node-*")):
            shutil.rmtree(study.folder, ignore_errors=True)
        raise


def _config(given: dict[str, Any]) -> dict[str, Any]:
    """Return the flags that do the same survey again."""
    left_out = {"output", "progress", "say", "overwrite"}
    flags: dict[str, Any] = {}
    for name, value in given.items():
        if name in left_out or value is None or value is False:
            continue
        if name in ("model", "corpus", "frequencies"):
            value = spelt(value)
        elif name == "sites":
            value = ",".join(value)
        flag = {"measures": "measure"}.get(name, name.replace("_", "-"))
        if value is not None:
            flags[flag] = list(value) if name == "measures" else value
    return {"survey": flags}


def needs_torch(who: str = "a survey") -> None:
    """Refuse to begin where the packages of models are missing."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise SourceError(
                f"{who} needs {package}, got none",
                hint="pip install 'isoscope[hf]'",
                slug="extra-missing",
            )
