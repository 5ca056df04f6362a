"""The worker of `isoscope sweep`: a task, a model, and every cell trained from its weights."""

from dataclasses import asdict, field, replace
from pathlib import Path
from time import perf_counter

import msgspec
import numpy as np
import torch
from torch import Tensor

from isoscope.accumulate.survey import Survey
from isoscope.capture.runner import threads
from isoscope.control import IStar, Penalty, penalised
from isoscope.dataclass import dataclass
from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.engine.time import as_time
from isoscope.errors import ConfigError, StreamError
from isoscope.lab.sweep.encode import Encoder
from isoscope.lab.sweep.examples import read_task
from isoscope.lab.sweep.fine_tune import TaskHead, Trainer
from isoscope.lab.sweep.geometry import geometry
from isoscope.lab.sweep.penalties import (
    STREAMED,
    Choice,
    checked_weights,
)
from isoscope.lab.sweep.results import (
    LOSS,
    TASK,
    CellRecord,
    SweepLine,
    check_comparable,
    diverged_cells,
    group_of,
    sweep_results,
)
from isoscope.lab.sweep.spec import Before, Cell, SweepPlan, SweepSpec
from isoscope.lab.sweep.task import METRICS
from isoscope.store import new_origin, save
from isoscope.store.state import State
from isoscope.study.model import At, choose_state, model_content, open_model
from isoscope.study.run import Finished, Live, Planner
from isoscope.study.spec import digest
from isoscope.training.train import DivergedError, Recipe, epoch_batches
from isoscope.types import Reading

CUT = "examples that fill all {length} tokens, and may have been cut: {count}"
STREAM = 250_000  # tokens of a streamed matrix, as published
STREAM_BATCH, PROBE_BATCH = 64, 32  # examples side by side


@dataclass
class CellRunner:
    """A trainer, and everything that decides what it will find."""

    trainer: Trainer
    choice: Choice
    recipe: Recipe
    at: At  # the state that stands for a text
    probe: int  # held-out examples whose geometry is measured
    threads: int
    stable: Tensor | None = field(default=None, repr=False)  # of the weights all start from

    def run(self, unit: Before | Cell) -> dict[str, object]:
        """Do a unit, and return its record."""
        with threads(self.threads), torch.random.fork_rng(devices=[]):
            if isinstance(unit, Before):
                self.trainer.reset()
                return {"readings": [asdict(each) for each in self._geometry("", 0)]}
            return self._cell(unit.weight, unit.seed)

    def _cell(self, weight: float, seed: int) -> dict[str, object]:
        group = group_of(weight, seed)
        found: list[Reading] = []
        trainer, task = self.trainer, self.trainer.task
        start = perf_counter()

        def evaluate(step: int, head: TaskHead) -> None:
            metric, loss = trainer.evaluate(head)
            n = len(trainer.test)
            found.extend(
                Reading("", TASK, "all", group, step, name, value, None, None, n, 1)
                for name, value in ((task.metric, metric), (LOSS, loss))
            )
            found.extend(self._geometry(group, step))

        penalty = self.choice.at(weight, seed) if weight else None
        begin = self._begin if self.choice.towards == STREAMED else None
        try:
            losses = trainer.cell(self.recipe, seed, penalty, evaluate, begin, at=self.at)
        except DivergedError as error:
            # What was found on the way says nothing of the end, and is not kept.
            return {"weight": weight, "seed": seed, "diverged": str(error), "readings": []}
        return {
            "weight": weight,
            "seed": seed,
            "losses": losses,
            "seconds": perf_counter() - start,
            "readings": [asdict(each) for each in found],
        }

    def _geometry(self, group: str, step: int) -> list[Reading]:
        test = self.trainer.test
        places = np.argsort(test.lengths[: self.probe], kind="stable").tolist()
        starts = range(0, len(places), PROBE_BATCH)
        probes = [self.trainer.batch(test, places[at : at + PROBE_BATCH]) for at in starts]
        found = geometry(self.trainer.subject, probes, zeta=self.choice.zeta)
        return [replace(each, group=group, step=step) for each in found]

    def _begin(self, penalty: Penalty, epoch: int) -> None:
        """Find the matrix anew at the start of an epoch; all cells share the first."""
        assert isinstance(penalty, IStar)
        if epoch == 0 and self.stable is not None:
            penalty.shrinkage = self.stable.clone()
            return
        train = self.trainer.train
        batches = (
            self.trainer.batch(train, places).inputs
            for places in epoch_batches(train.lengths, STREAM_BATCH, 0, epoch)
        )
        try:
            penalty.stream(self.trainer.body, batches, tokens=STREAM)
        except StreamError as error:
            if epoch == 0:
                raise
            # The last step of an epoch left no finite state behind.
            raise DivergedError("the states of an epoch are NaN or infinite") from error
        if epoch == 0 and penalty.shrinkage is not None:
            self.stable = penalty.shrinkage.clone()


class SweepWorker(Planner[Results[SweepLine]]):
    """A trainer, and everything that decides what it will find."""

    def __init__(self, spec: SweepSpec, notify: Notify, live: Live) -> None:
        self.spec, self.notify = spec, notify
        self.choice, self.weights = choose_penalty(spec), checked_weights(spec.weights)
        task = read_task(spec)
        self.subject = open_model(spec.load, live=live.get("model"), say=notify.say)
        encoder = Encoder(self.subject, spec.length)
        # Layers that the model does not have are refused before anything is trained.
        penalised(self.subject.loaded.body, self.choice.at(1.0, 0))
        train, test = (encoder.encode(task, each) for each in (task.train, task.test))
        self.trainer = Trainer(self.subject, task, encoder, train, test)
        self.at: At = choose_state(self.subject, spec.at, as_pooled=True)

    def content(self) -> dict[str, str]:
        """Return fingerprints of the model and of the examples."""
        return {**model_content(self.subject), "data": digest(self.trainer.task.describe())}

    def plan(self) -> SweepPlan:
        """Return the model as it came, then every cell, seed by seed.

        A sweep that is looked at early then has every weight.
        """
        spec = self.spec
        seeds = tuple(spec.seed + number for number in range(spec.seeds))
        cells = [Cell(weight, seed) for seed in seeds for weight in self.weights]
        plan = SweepPlan(
            stages=((Before(), *cells),),
            weights=self.weights,
            seeds=seeds,
            threads=spec.threads or torch.get_num_threads(),
        )
        if self.notify.say is not None:
            self.notify.tell(self._forecast(plan))
        return plan

    def _recipe(self) -> Recipe:
        spec = self.spec
        steps = {*(range(spec.every, spec.steps, spec.every) if spec.every else ()), spec.steps}
        return Recipe(spec.steps, spec.batch, spec.learning_rate, tuple(sorted(steps)))

    def _forecast(self, plan: SweepPlan) -> str:
        """Return what the cells are, and about how long they will take."""
        cells, weights = len(plan.weights) * len(plan.seeds), len(plan.weights)
        one = f"{', '.join(f'{weight:g}' for weight in plan.weights)}"
        what = (
            f"{cells} cells of {self.spec.steps} steps: {weights} weights ({one}), "
            f"each with {len(plan.seeds)} seed{'s' * (len(plan.seeds) > 1)}"
        )
        with threads(plan.threads), torch.random.fork_rng(devices=[]):
            seconds = self._seconds_per_cell()
        return what if seconds is None else f"{what}; about {as_time(cells * seconds)} here"

    def _seconds_per_cell(self) -> float | None:
        """Return about how long a cell takes, from two steps and a batch of held-out examples.

        Penalties are not in it. Every cell starts from the weights the model came with, and
        from its own seed: no number depends on what is done here.
        """
        trainer, recipe, seed = self.trainer, self._recipe(), self.spec.seed
        try:
            for steps in (1, 2):  # the first one also fills caches
                start = perf_counter()
                few = replace(recipe, steps=steps, evaluate_at=())
                trainer.cell(few, seed, None, lambda *_: None, at=self.at)
                per_step = (perf_counter() - start) / steps
        except DivergedError:
            return None
        finally:
            trainer.reset()
        places = range(min(PROBE_BATCH, len(trainer.test)))
        start = perf_counter()
        with torch.inference_mode():
            trainer.body(**trainer.batch(trainer.test, places).inputs)
        per_example = (perf_counter() - start) / len(places)
        examples = len(trainer.test) + min(self.spec.probe, len(trainer.test))
        return recipe.steps * per_step + len(recipe.evaluate_at) * examples * per_example

    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, SweepPlan)
        self.cells = CellRunner(
            self.trainer, self.choice, self._recipe(), self.at, self.spec.probe, plan.threads
        )

    def run(self, unit: object, _scratch: Scratch, _ticks: Ticks, /) -> dict[str, object]:
        """Train one cell, or measure the model as it came; return the record."""
        assert isinstance(unit, Before | Cell)
        return self.cells.run(unit)

    def finish(self, done: Finished) -> Results[SweepLine]:
        """Return one line per weight, and write the run where there is a target."""
        plan = done.plan_as(SweepPlan)
        records = msgspec.convert(done.records, list[CellRecord])
        diverged = diverged_cells(records)
        check_comparable(diverged, plan.weights, plan.seeds)
        loaded, task = self.subject.loaded, self.trainer.task
        target = done.target
        name = target.name if target else loaded.name
        readings = done.mark(
            replace(each, run=name) for record in records for each in record.readings
        )
        right = None if task.kind == "span" else self.trainer.test.targets
        origin = new_origin(
            sources=self._sources(),
            settings={
                **self.spec.settings(),
                "measures": sorted({each.measure for each in readings}),
                "as_published": False,
                "documents": True,
                "penalty": asdict(self.choice),
                "weights": list(plan.weights),
                "seeds": list(plan.seeds),
            },
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
                "diverged": diverged,
            },
        )
        if target is not None:
            flags = self.spec.to_config(absolute=True)
            flags |= {"rows": self.spec.rows or 0, "threads": plan.threads}
            save(
                target,
                State(Survey()),
                readings,
                origin,
                {"sweep": flags},
                done.overwrite,
                resume=True,
                id=done.id,
            )
        return sweep_results(readings, origin, loaded.name)

    def _remarks(self) -> list[str]:
        trainer = self.trainer
        full = sum(each.truncated for each in (*trainer.train.prepared, *trainer.test.prepared))
        limit = trainer.encoder.feed.reader.limit
        cut = [CUT.format(length=limit, count=full)] if full else []
        return [*trainer.task.remarks, *cut]

    def _sources(self) -> list[dict[str, object]]:
        trainer, spec = self.trainer, self.spec
        parts = (
            ("train", spec.data, trainer.task.train),
            ("test", spec.test or spec.data, trainer.task.test),
        )
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


def choose_penalty(spec: SweepSpec) -> Choice:
    """Return the penalty without its weight, checked."""
    if spec.rows == 1:
        raise ConfigError(
            "expected at least 2 as rows, got 1",
            hint="give a whole number to --rows; 0 takes all",
            slug="number-too-small",
        )
    return Choice(
        spec.penalty,
        zeta=spec.zeta,
        towards=spec.towards,
        layers=layers_of(spec.layers),
        rows=spec.rows or None,
        per_layer=spec.per_layer or None,
        as_published=spec.as_published,
    )


def layers_of(words: tuple[str, ...] | None) -> str | tuple[int, ...] | None:
    """Return layers as a penalty takes them: all, last, or numbers."""
    if words is None or words in (("all",), ("last",)):
        return words[0] if words else None
    try:
        return tuple(map(int, words))
    except ValueError:
        raise ConfigError(
            f"expected all, last or numbers of layers, got {','.join(words)!r}",
            hint="layers count from 0: --layers 0,5",
            slug="penalty-layers",
        ) from None
