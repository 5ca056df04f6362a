"""The worker of `isoscope sweep`: a task, a model, and every cell trained from its weights."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from isoscope.accumulate.survey import Survey
from isoscope.engine import Notify
from isoscope.engine.base import Scratch, Ticks
from isoscope.errors import ConfigError
from isoscope.lab.sweep.cells import Cells, cell_records, readings_of
from isoscope.lab.sweep.diverged import check_left, diverged
from isoscope.lab.sweep.encode import Encoder
from isoscope.lab.sweep.examples import Asked, described, task_of
from isoscope.lab.sweep.head import place_of
from isoscope.lab.sweep.metric import METRICS
from isoscope.lab.sweep.penalties import Choice, check_layers, checked_choice, checked_weights
from isoscope.lab.sweep.results import sweeps_of
from isoscope.lab.sweep.spec import Before, Cell, SweepPlan, SweepSpec
from isoscope.lab.sweep.train import Recipe, Trainer
from isoscope.store import new_origin, save
from isoscope.store.state import State
from isoscope.study.model import model_content, open_model
from isoscope.study.rows import absolute
from isoscope.study.run import Finished, Live
from isoscope.study.spec import digest
from isoscope.types import Reading

if TYPE_CHECKING:
    from isoscope.display import Results
    from isoscope.lab.sweep.summary import Line

CUT = "examples that fill all {length} tokens, and may have been cut: {count}"


class SweepWorker:
    """A trainer, and everything that decides what it will find."""

    def __init__(self, spec: SweepSpec, notify: Notify, live: Live) -> None:
        self.spec = spec
        choice, self.weights = _choice(spec), checked_weights(spec.weights)
        asked = Asked(
            spec.task,
            spec.column,
            spec.pair,
            spec.label,
            spec.score,
            spec.answer,
            spec.metric,
        )
        task = task_of(
            spec.data,
            spec.test,
            asked,
            hold_out=spec.hold_out,
            seed=spec.seed,
            skip_bad=spec.skip_bad,
        )
        self.subject = open_model(spec.load, live=live.get("model"), say=notify.say)
        encoder = Encoder(self.subject, spec.length)
        check_layers(choice, self.subject.loaded.body)
        train, test = (encoder.encoded(task, each) for each in (task.train, task.test))
        self.trainer = Trainer(self.subject, task, encoder, train, test)
        self.choice = choice
        tried = {*(range(spec.every, spec.steps, spec.every) if spec.every else ()), spec.steps}
        self.recipe = Recipe(
            spec.steps,
            spec.batch,
            spec.learning_rate,
            tuple(sorted(tried)),
            place_of(self.subject, spec.at),
        )

    def content(self) -> dict[str, str]:
        """Return fingerprints of the model and of the examples."""
        return {**model_content(self.subject), "data": digest(described(self.trainer.task))}

    def plan(self) -> SweepPlan:
        """Return the model as it came, then every cell, seed by seed.

        A sweep that is looked at early then has every weight.
        """
        spec = self.spec
        seeds = tuple(spec.seed + number for number in range(spec.seeds))
        cells = [Cell(weight, seed) for seed in seeds for weight in self.weights]
        return SweepPlan(
            stages=((Before(), *cells),),
            weights=self.weights,
            seeds=seeds,
            threads=spec.threads or torch.get_num_threads(),
        )

    def enter(self, plan: object, stage: int, before: State | None) -> None:
        """Take the plan."""
        _ = stage, before
        assert isinstance(plan, SweepPlan)
        self.cells = Cells(
            self.trainer,
            self.choice,
            self.recipe,
            self.spec.probe,
            self.spec.length,
            plan.threads,
        )

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> dict[str, Any]:
        """Train one cell, or measure the model as it came; return the record."""
        _ = scratch, ticks
        assert isinstance(unit, Before | Cell)
        return self.cells.run(unit)

    def finish(self, done: Finished) -> "Results[Line]":
        """Return one line per weight, and write the run where there is a target."""
        plan = done.plan_as(SweepPlan)
        records = cell_records(done.records)
        gone = diverged(records)
        check_left(gone, plan.weights, plan.seeds)
        loaded, task = self.subject.loaded, self.trainer.task
        target = done.target
        readings = readings_of(records, target.name if target else loaded.name)
        right = None if task.kind == "span" else self.trainer.test.targets
        origin = new_origin(
            sources=self._sources(),
            settings=self._settings(plan, readings),
            seed=self.spec.seed,
            kind="sweep",
            model=loaded.identity,
            task={
                "name": task.name,
                "kind": task.kind,
                "metric": task.metric,
                "baseline": METRICS[task.metric].baseline(right),
                "classes": list(task.classes),
                "remarks": [*self._remarks(), *done.notes],
                "diverged": gone,
            },
        )
        if target is not None:
            flags = absolute(self.spec, ("model", "data", "test"))
            flags |= {"rows": self.spec.rows or 0, "threads": plan.threads}
            save(
                target,
                State(Survey()),
                readings,
                origin,
                {"sweep": flags},
                done.overwrite,
                resume=True,
            )
        return sweeps_of(readings, origin, loaded.name)

    def _settings(self, plan: SweepPlan, readings: list[Reading]) -> dict[str, Any]:
        return {
            **self.spec.settings(),
            "measures": sorted({each.measure for each in readings}),
            "as_published": False,
            "documents": True,
            "penalty": asdict(self.choice),
            "weights": list(plan.weights),
            "seeds": list(plan.seeds),
        }

    def _remarks(self) -> list[str]:
        trainer = self.trainer
        full, limit = trainer.train.cut + trainer.test.cut, trainer.encoder.reader.limit
        cut = [CUT.format(length=limit, count=full)] if full else []
        return [*trainer.task.remarks, *cut]

    def _sources(self) -> list[dict[str, Any]]:
        trainer, spec = self.trainer, self.spec
        parts = [("train", spec.data, trainer.task.train)]
        parts.append(("test", spec.test or spec.data, trainer.task.test))
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


def _choice(spec: SweepSpec) -> Choice:
    """Return the penalty without its weight, checked."""
    if spec.rows == 1:
        raise ConfigError(
            "expected at least 2 as rows, got 1",
            hint="give a whole number to --rows; 0 takes all",
            slug="number-too-small",
        )
    return checked_choice(
        spec.penalty,
        zeta=spec.zeta,
        towards=spec.towards,
        layers=layers_of(spec.layers),
        rows=spec.rows or None,
        per_layer=spec.per_layer,
        as_published=spec.as_published,
    )


def layers_of(words: tuple[str, ...] | None) -> str | list[int] | None:
    """Return layers as a penalty takes them: all, last, or numbers."""
    if words is None or words in (("all",), ("last",)):
        return words[0] if words else None
    try:
        return [int(word) for word in words]
    except ValueError:
        raise ConfigError(
            f"expected all, last or numbers of layers, got {','.join(words)!r}",
            hint="layers count from 0: --layers 0,5",
            slug="penalty-layers",
        ) from None
