"""The verb of control: fine-tune with a penalty at several weights, and compare."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from isoscope.errors import ConfigError, IsoscopeError, StoreError
from isoscope.report.escape import plain
from isoscope.report.number import short, shown
from isoscope.report.records import Records
from isoscope.report.table import Column, Table
from isoscope.store.folder import MANIFEST
from isoscope.verbs.answer import checked_seed
from isoscope.verbs.target import aside, positive, target_of, within, working
from isoscope.verbs.vectors import spelt

if TYPE_CHECKING:
    from isoscope.lab.sweep.cells import Cells
    from isoscope.lab.sweep.summary import Line
    from isoscope.store import Origin

WEIGHTS = (-5.0, -3.0, -1.0, 0.0, 1.0, 3.0, 5.0)
SHOWN = ("isoscore-star", "isoscore-debiased", "mean-cosine", "twonn")
NOT_LEARNT = (
    "not learnt: without penalty the task does not beat its baseline of {baseline:.3g} by two "
    "standard errors, so the differences say nothing about it"
)
ONE_SEED = "one seed: no intervals, and whether the task was learnt cannot be told"
MEANS = "geometry of held-out texts, mean over layers and seeds; by layer with --json"
CUT = "examples that fill all {length} tokens, and may have been cut: {count}"


class Sweeps(Records["Line"]):
    """A line for each weight."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """How the task went, and under it what became of the geometry."""
        if not self:
            return (Table(self._caption(), ()),)
        columns = (
            Column("weight", tuple(f"{line.weight:g}" for line in self)),
            Column(str(self.shared["metric"]), tuple(map(_spread, self))),
            Column("difference", tuple(_difference(line)[0] for line in self)),
            Column("95 % interval", tuple(_difference(line)[1] for line in self)),
            Column("p (Holm)", tuple(map(_chance, self))),
            Column("loss", tuple(f"{line.loss:.3f}" for line in self)),
        )
        kept = tuple(column for column in columns if any(column.cells))
        task = Table(self._caption(), kept, tuple(map(plain, self.remarks)))
        return (task, Table(MEANS, self._geometry()))

    def _geometry(self) -> tuple[Column, ...]:
        from isoscope.lab.sweep.summary import over_layers

        start = self[0].before
        stages = [start, *(line.after for line in self)]
        return (
            Column("weight", ("before", *(f"{line.weight:g}" for line in self))),
            *(
                Column(name, tuple(short(over_layers(stage, name)) for stage in stages))
                for name in SHOWN
                if name in start
            ),
        )

    def _caption(self) -> str:
        names = ("model", "task", "penalty", "steps", "seeds")
        return plain(", ".join(f"{name} {self.shared[name]}" for name in names))


def _spread(line: "Line") -> str:
    return f"{line.mean:.4f}" + (f" ±{line.sd:.4f}" if line.sd is not None else "")


def _difference(line: "Line") -> tuple[str, str]:
    apart = line.difference
    return ("", "") if apart is None else shown(apart.value, apart.low, apart.high)


def _chance(line: "Line") -> str:
    chance = line.difference.p_holm if line.difference else None
    return "" if chance is None else ("<0.001" if chance < 0.001 else f"{chance:.3f}")


def sweep(
    model: str | os.PathLike[str],
    data: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str] | None = None,
    test: str | os.PathLike[str] | None = None,
    hold_out: float = 0.2,
    task: str | None = None,
    column: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    score: str | None = None,
    answer: str | None = None,
    metric: str | None = None,
    skip_bad: bool = False,
    penalty: str = "istar",
    weights: Sequence[float] = WEIGHTS,
    seeds: int = 5,
    seed: int = 0,
    steps: int = 200,
    batch: int = 16,
    length: int = 128,
    learning_rate: float = 1e-4,
    every: int | None = None,
    layers: str | int | Sequence[int] | None = None,
    per_layer: bool = False,
    towards: str = "scaled",
    zeta: float = 0.2,
    rows: int | None = 2048,
    as_published: bool = False,
    at: Any = None,
    probe: int = 256,
    threads: int | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Sweeps:
    """Fine-tune a model on a task with a penalty, once for each weight and seed.

    Weight 0 is always among them, and what the others are compared with, seed by seed. With
    `output` a run folder is written; one that was begun with the same arguments and not
    finished is gone on with. Held-out examples are those of `test`, or a share of `data`.
    """
    given = dict(locals())
    from isoscope.verbs.model import needs_torch

    needs_torch("a sweep")
    from isoscope.lab.sweep.diverged import check_left, diverged

    for name, value in (("seeds", seeds), ("steps", steps), ("threads", threads)):
        positive(name, value)
    for name, value in (("batch", batch), ("probe", probe), ("length", length)):
        positive(name, value, least=2)
    positive("every", every)
    positive("rows", rows or None, least=2)
    given["rows"] = rows or None
    within("zeta", zeta, 0.0, 1.0)
    within("learning-rate", learning_rate, 1e-12, 1.0)
    checked_seed(seed)
    target = _target(output, overwrite)
    cells = _planned(given)
    with TemporaryDirectory(prefix="isoscope-") as spare:
        folder = working(target) or Path(spare) / "run"
        records = _done(cells, folder, overwrite, progress)
        check_left(diverged(records), cells.weights, cells.seeds)
        found = _saved(cells, records, given, target)
        if target is not None:
            shutil.rmtree(aside(target), ignore_errors=True)
    return found


def _target(output: str | os.PathLike[str] | None, overwrite: bool) -> Path | None:
    """Return where the run goes; of one that is there say how to look at it."""
    try:
        return target_of(output, overwrite)
    except StoreError as error:
        assert output is not None
        if error.slug != "store-exists" or not (Path(output) / MANIFEST).is_file():
            raise
        raise StoreError(
            error.problem,
            hint=f"see what it found with isoscope report {output}, or all its numbers with "
            f"isoscope read {output} --json; to sweep again take another name or --overwrite",
            slug=error.slug,
        ) from None


def _planned(given: dict[str, Any]) -> "Cells":
    """Read the task, load the model, and lay out the cells; what is wrong is told here."""
    import torch

    from isoscope.lab.sweep.cells import Cells
    from isoscope.lab.sweep.encode import Encoder
    from isoscope.lab.sweep.examples import Asked, task_of
    from isoscope.lab.sweep.head import place_of
    from isoscope.lab.sweep.penalties import checked_choice, checked_weights, in_model
    from isoscope.lab.sweep.train import Recipe, Trainer

    choice = checked_choice(
        given["penalty"],
        zeta=given["zeta"],
        towards=given["towards"],
        layers=given["layers"],
        rows=given["rows"],
        per_layer=given["per_layer"],
        as_published=given["as_published"],
    )
    weights = checked_weights(given["weights"])
    asked = Asked(
        given["task"], given["column"], given["pair"], given["label"], given["score"],
        given["answer"], given["metric"],
    )  # fmt: skip
    task = task_of(
        given["data"], given["test"], asked, hold_out=given["hold_out"], seed=given["seed"],
        skip_bad=given["skip_bad"],
    )  # fmt: skip
    from isoscope.lab import subject_of
    from isoscope.verbs.model import opened

    subject = subject_of(
        opened(
            given["model"],
            device=given["device"],
            trust_remote_code=given["trust_remote_code"],
            say=given["say"],
        )
    )
    encoder = Encoder(subject, given["length"])
    in_model(choice, subject.loaded)
    train, test = (encoder.encoded(task, each) for each in (task.train, task.test))
    steps, every = given["steps"], given["every"]
    tried = {*(range(every, steps, every) if every else ()), steps}
    recipe = Recipe(
        steps,
        given["batch"],
        given["learning_rate"],
        tuple(sorted(tried)),
        place_of(subject, given["at"]),
    )
    return Cells(
        Trainer(subject, task, encoder, train, test),
        choice,
        recipe,
        weights,
        tuple(given["seed"] + number for number in range(given["seeds"])),
        given["probe"],
        given["length"],
        given["threads"] or torch.get_num_threads(),
    )


def _done(
    cells: "Cells",
    folder: Path,
    overwrite: bool,
    progress: Callable[[int, int], None] | None,
) -> list[Any]:
    """Do the cells that are not done yet; leave no folder behind if not one could be done."""
    from isoscope.engine import here
    from isoscope.store.ledger import Ledger

    fresh = not folder.exists()
    units = cells.units()
    try:
        return here(units, cells.done, folder / "units", progress=progress, keep=Ledger).all()
    except IsoscopeError as error:
        if error.slug == "resume-other" and overwrite:
            shutil.rmtree(folder)
            return _done(cells, folder, False, progress)
        if fresh and not any(folder.glob("units/unit-*")):
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _saved(
    cells: "Cells", records: list[Any], given: dict[str, Any], target: Path | None
) -> Sweeps:
    from isoscope.lab.sweep.cells import readings_of
    from isoscope.lab.sweep.diverged import diverged
    from isoscope.store import new_origin, save
    from isoscope.survey import Survey

    loaded = cells.trainer.subject.loaded
    readings = readings_of(records, target.name if target else loaded.name)
    task = cells.trainer.task
    described = {
        "name": task.name,
        "kind": task.kind,
        "metric": task.metric,
        "baseline": _baseline(cells),
        "classes": list(task.classes),
        "remarks": _remarks(cells),
        "diverged": diverged(records),
    }
    settings = {
        "measures": sorted({each.measure for each in readings}),
        "zeta": given["zeta"],
        "as_published": False,
        "documents": True,
        "penalty": cells.choice.settings(),
        "weights": list(cells.weights),
        "seeds": list(cells.seeds),
        "steps": cells.recipe.steps,
        "batch": cells.recipe.batch,
        "learning_rate": cells.recipe.learning_rate,
        "length": cells.length,
    }
    origin = new_origin(
        sources=_sources(cells, given), settings=settings, seed=given["seed"],
        kind="sweep", model=loaded.identity, task=described,
    )  # fmt: skip
    if target is not None:
        save(
            target, Survey(), readings, origin, _config(given), given["overwrite"], resume=True
        )
    return sweeps_of(readings, origin, loaded.name)


def sweeps_of(readings: Sequence[Any], origin: "Origin", model: str = "") -> Sweeps:
    """Return what a sweep found, from the readings and the origin of its run."""
    from isoscope.lab.sweep.diverged import told
    from isoscope.lab.sweep.summary import compared, lines_of, was_learnt

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
    return Sweeps(lines, remarks=remarks, shared=shared)


def _baseline(cells: "Cells") -> float:
    from isoscope.lab.sweep.metric import METRICS

    task = cells.trainer.task
    right = None if task.kind == "span" else cells.trainer.test.targets
    return METRICS[task.metric].baseline(right)


def _remarks(cells: "Cells") -> list[str]:
    full = cells.trainer.train.cut + cells.trainer.test.cut
    limit = cells.trainer.encoder.reader.limit
    cut = [CUT.format(length=limit, count=full)] if full else []
    return [*cells.trainer.task.remarks, *cut]


def _sources(cells: "Cells", given: dict[str, Any]) -> list[dict[str, Any]]:
    trainer = cells.trainer
    parts = [("train", given["data"], trainer.task.train)]
    parts.append(("test", given["test"] or given["data"], trainer.task.test))
    return [
        {
            "name": f"{trainer.task.name} {part}",
            "fingerprint": trainer.task.fingerprint(examples),
            "rows": len(examples),
            "dtype": str(trainer.subject.loaded.identity["dtype"]),
            "width": trainer.width,
            "file": Path(place).name,
        }
        for part, place, examples in parts
    ]


def _config(given: dict[str, Any]) -> dict[str, Any]:
    """Return the flags that do the same sweep again."""
    left_out = {"output", "progress", "say", "overwrite"}
    flags: dict[str, Any] = {}
    for name, value in given.items():
        if name == "rows":
            value = value or 0
        elif name in left_out or value is None or value is False:
            continue
        elif name in ("model", "data", "test"):
            value = spelt(value)
        elif name == "weights":
            value = ",".join(repr(float(each)) for each in value)
        elif name == "layers" and not isinstance(value, str | int):
            value = ",".join(map(str, value))
        flags[name.replace("_", "-")] = value
    return {"sweep": flags}


def checked_layers(text: str | None) -> str | list[int] | None:
    """Return layers as a penalty takes them from words: all, last, or numbers."""
    if text is None or text in ("all", "last"):
        return text
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(
            f"expected all, last or numbers of layers, got {text!r}",
            hint="layers count from 0: --layers 0,5",
            slug="penalty-layers",
        ) from None
