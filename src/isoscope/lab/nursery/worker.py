"""The worker of `isoscope nursery train`: one training, resumable to the same weights."""

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any

import msgspec
import torch

from isoscope.accumulate.survey import Survey
from isoscope.capture.runner import threads
from isoscope.control import Alert, Penalty, Watch
from isoscope.control.watch.alert import LOSS as LOSS_SEEN
from isoscope.display import READINGS, Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import UndefinedError
from isoscope.lab.nursery.architecture import build_model, count_parameters
from isoscope.lab.nursery.figures import Images, make_images
from isoscope.lab.nursery.learner import Learner
from isoscope.lab.nursery.results import (
    HELD_OUT,
    LOSS,
    SITE,
    STEPS,
    TrainedStep,
    metrics_csv,
)
from isoscope.lab.nursery.spec import Train, TrainPlan, TrainSpec
from isoscope.lab.nursery.windows import Windows, as_pretrained, open_windows
from isoscope.lab.sweep.penalties import Choice
from isoscope.store import new_origin, save
from isoscope.store.state import State
from isoscope.study.run import Finished, Live, Planner
from isoscope.training.train import DivergedError, Recipe, Snapshot, epoch_batches, train
from isoscope.types import Reading

SNAPSHOT = "snapshot.pt"
METRICS, HELD_OUT_TEXT, HELD_OUT_IMAGES = "metrics.csv", "held_out.txt", "held_out"
WATCHED = "watch.csv"
PATIENCE = 20.0  # seconds after which a snapshot is written between checkpoints
PROBES = 32  # held-out texts that a watch reads


class TrainingDivergedError(UndefinedError):
    """The loss became NaN or infinite; what was saved until then is kept."""


class TrainRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a training gave."""

    steps: list[TrainedStep]
    parameters: int
    inner_parameters: int  # outside of the token matrices
    identity: dict[str, object]
    diverged: str = ""  # why it ended early
    seconds: float = 0.0  # of this process


class TrainWorker(Planner[Results[TrainedStep]]):
    """The data of a training, open; the model is built when it is trained."""

    def __init__(self, spec: TrainSpec, notify: Notify, live: Live) -> None:
        spec.check()
        self.spec, self.notify = spec, notify
        self.penalty = make_penalty(spec)
        self.data: Windows | Images
        if spec.arch == "vit":
            self.data = make_images(spec.train.seed)
        else:
            self.data = open_windows(spec, live.get("corpus"))

    def content(self) -> dict[str, str]:
        """Return a fingerprint of the examples."""
        return {"data": f"{self.data.name} {self.data.digest()}"}

    def plan(self) -> TrainPlan:
        """Return the one unit there is."""
        recipe = self.spec.train
        tokens = recipe.steps * recipe.batch * int(self.data.lengths[0])
        return TrainPlan(
            stages=((Train(),),),
            threads=recipe.threads or torch.get_num_threads(),
            tokens=tokens,
        )

    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, TrainPlan)
        self.planned = plan

    def run(self, unit: object, scratch: Scratch, ticks: Ticks, /) -> TrainRecord:
        """Train, from the last snapshot where there is one."""
        assert isinstance(unit, Train)
        with threads(self.planned.threads), torch.random.fork_rng(devices=[]):
            return Course(self.spec, self.data, self.penalty, scratch, ticks, self.notify).go()

    def finish(self, done: Finished) -> Results[TrainedStep]:
        """Return a line per checkpoint, and write the folder where there is a target."""
        (record,) = msgspec.convert(done.records, list[TrainRecord])
        spec, data = self.spec, self.data
        results = Results(
            record.steps,
            STEPS,
            remarks=[*self._remarks(record), *done.notes],
            shared={
                "arch": spec.arch,
                "data": data.name,
                "parameters": record.parameters,
                "inner_parameters": record.inner_parameters,
                "unigram_entropy": data.unigram_entropy,
                "floor": data.floor,
            },
        )
        if done.target is not None:
            self._save(done, record, results)
        if record.diverged:
            last = record.steps[-1].step if record.steps else None
            kept = "no checkpoint" if last is None else f"checkpoints up to step {last}"
            raise TrainingDivergedError(
                f"training diverged: {record.diverged}",
                hint=f"lower --learning-rate; {kept} can be looked at"
                + (f" in {done.target.name}" if done.target is not None else " with --output"),
                slug="nursery-diverged",
            )
        return results

    def _remarks(self, record: TrainRecord) -> list[str]:
        if not record.steps:
            return []
        data, last = self.data, record.steps[-1].held_out_loss
        below = data.unigram_entropy - last
        what = "label" if isinstance(data, Images) else "unigram"
        side = "below" if below >= 0 else "above"
        found = [
            f"held-out loss {last:.3f} nats, {abs(below):.3f} {side} the {what} entropy of "
            f"{data.unigram_entropy:.3f}"
        ]
        if data.floor is not None:
            found.append(f"the least loss of this language is known: {data.floor:.3f} nats")
        return found

    def _save(self, done: Finished, record: TrainRecord, results: Results[TrainedStep]) -> None:
        assert done.target is not None
        name, width = done.target.name, self.spec.shape.width
        tokens = len(self.data.held_out_places)
        readings = [
            Reading(name, SITE, "all", "", e.step, measure, value, None, None, tokens, width)
            for e in record.steps
            for measure, value in ((LOSS, e.loss), (HELD_OUT, e.held_out_loss))
        ]
        origin = new_origin(
            sources=[
                {
                    "name": self.data.name,
                    "fingerprint": self.data.digest(),
                    "rows": int(self.data.lengths.sum()),
                    "dtype": "float32",
                    "width": width,
                    "warnings": list(results.remarks),
                }
            ],
            settings={
                **self.spec.settings(),
                "measures": [LOSS, HELD_OUT],
                "as_published": False,
                "documents": True,
                "unigram_entropy": self.data.unigram_entropy,
                "floor": self.data.floor,
                "inner_parameters": record.inner_parameters,
                "diverged": record.diverged,
            },
            seed=self.spec.train.seed,
            kind=self.spec.command,
            model=record.identity,
        )
        files = done.kept(0)
        files.mkdir(parents=True, exist_ok=True)
        (files / METRICS).write_text(metrics_csv(record.steps))
        write_held_out(files, self.data)
        flags = self.spec.to_config(absolute=True) | {"threads": done.plan.threads}
        save(
            done.target,
            State(Survey()),
            Results(readings, READINGS),
            origin,
            {self.spec.command: flags},
            done.overwrite,
            resume=True,
            files=files,
        )


class Course:
    """One training under way: checkpoints into the files of the run, snapshots into scratch."""

    def __init__(
        self,
        spec: TrainSpec,
        data: Windows | Images,
        penalty: Penalty | None,
        scratch: Scratch,
        ticks: Ticks,
        notify: Notify,
    ) -> None:
        self.spec, self.data, self.ticks, self.notify = spec, data, ticks, notify
        self.folder, self.files = scratch.path, scratch.kept
        self.learner = Learner(spec, data, penalty)
        self.watch = make_watch(spec, data, notify) if spec.watch else None
        self.steps: list[TrainedStep] = []
        self.saved = set(spec.train.saved_steps)
        self.start = self.last = perf_counter()
        self.begun = 0  # the step that this process began after
        self.values: list[float] = []

    def go(self) -> TrainRecord:
        """Train to the end, or until the loss is not finite."""
        diverged = ""
        try:
            self._train()
        except DivergedError as error:
            diverged = str(error)
        if self.watch is not None:
            (self.files / WATCHED).write_text(watch_csv(self.watch))
        model = self.learner.model
        whole, inner = count_parameters(model)
        return TrainRecord(
            steps=self.steps,
            parameters=whole,
            inner_parameters=inner,
            identity={
                "model": f"nursery of {self.spec.arch}",
                "architecture": type(model).__name__,
                "parameters": whole,
                "untrained": False,
                "dtype": "float32",
            },
            diverged=diverged,
            seconds=perf_counter() - self.start,
        )

    def _train(self) -> None:
        spec, learner = self.spec.train, self.learner
        lengths = self.data.lengths
        found = self._read_snapshot()
        if found is None:
            places = epoch_batches(lengths, spec.batch, spec.seed, 0)[0]
            loss = learner.first_loss(places)
            self._add(0, loss)
            if self.watch is not None:
                self.watch.read(learner.model, 0)
        recipe = Recipe(spec.steps, spec.batch, spec.learning_rate)
        train(
            learner.modules,
            recipe,
            lengths,
            self._loss,
            seed=spec.seed,
            evaluate=lambda _: None,
            resume=found,
            after=self._after,
        )

    def _loss(self, places: list[int]) -> tuple[float, torch.Tensor]:
        if self.watch is not None:
            self.watch.begin(self.learner.model, self.learner.step + 1)
        value, loss = self.learner.loss(places)
        self.values.append(value)
        return value, loss

    def _after(self, step: int, snapshot: Callable[[], Snapshot]) -> None:
        spec = self.spec.train
        if self.watch is not None:
            self.watch.end(self.learner.model, step, self.values[-1])
        self.ticks.at(step * spec.batch * int(self.data.lengths[0]))
        if step in self.saved:
            self._add(step, sum(self.values) / len(self.values))
            self.values.clear()
        if step in self.saved or perf_counter() - self.last > PATIENCE:
            self._write_snapshot(snapshot())

    def _add(self, step: int, loss: float) -> None:
        """Save a checkpoint and a line of metrics."""
        spec = self.spec.train
        held_out = self.learner.held_out_loss()
        tokens = step * spec.batch * int(self.data.lengths[0])
        self.steps.append(TrainedStep(step, tokens, loss, held_out))
        part = self.files / f"step_{step}.part"
        shutil.rmtree(part, ignore_errors=True)
        self.learner.save(part)
        target = self.files / f"step_{step}"
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)
        seconds = perf_counter() - self.start
        speed = (tokens - self.begun * tokens / max(step, 1)) / seconds if step else 0.0
        left = (spec.steps - step) * seconds / max(step - self.begun, 1)
        rate = f", {speed:,.0f} tokens/s, {left:.0f} s left" if speed else ""
        self.notify.tell(f"step {step}: loss {loss:.3f}, held-out loss {held_out:.3f}{rate}")

    # --- snapshots ------------------------------------------------------------------------
    def _write_snapshot(self, found: Snapshot) -> None:
        """Write what training is resumed from: whole, or the one before it stays."""
        found["steps"] = [asdict(each) for each in self.steps]
        found["since"] = list(self.values)
        if self.watch is not None:
            found["watch"] = self.watch.state_dict()
        part = self.folder / f"{SNAPSHOT}.part"
        torch.save(found, part)
        part.replace(self.folder / SNAPSHOT)
        self.last = perf_counter()

    def _read_snapshot(self) -> Snapshot | None:
        path = self.folder / SNAPSHOT
        if not path.is_file():
            return None
        found: dict[str, Any] = torch.load(path, weights_only=True)
        self.steps = [TrainedStep(**each) for each in found.pop("steps")]
        self.values = list(found.pop("since"))
        if self.watch is not None:
            self.watch.load_state_dict(found.pop("watch"))
        self.learner.step = self.begun = int(found["step"])
        return found


def make_penalty(spec: TrainSpec) -> Penalty | None:
    """Return the penalty of a spec, checked; None without one."""
    if spec.penalty is None:
        return None
    return Choice(spec.penalty).at(spec.weight, spec.train.seed)


def make_watch(spec: TrainSpec, data: Windows | Images, notify: Notify) -> Watch:
    """Return a watch of the layers; alarms are remarks, and stop nothing."""

    def tell(alert: Alert) -> None:
        notify.tell(str(alert))

    probes, tokenizer = None, None
    if isinstance(data, Windows):
        probes = list(data.held_out_texts[:PROBES])
        tokenizer = as_pretrained(data.tokenizer, spec.train.length)
    return Watch(
        probes,
        every=spec.watch or 1,
        tokenizer=tokenizer,
        length=spec.train.length,
        on_alert=tell,
    )


def watch_csv(watch: Watch) -> str:
    """Return what a watch has read: one line per step and name."""
    rows = [
        (step, name, value)
        for name, series in watch.history.items()
        if name != LOSS_SEEN
        for step, value in series
    ]
    lines = (f"{step},{name},{value!r}" for step, name, value in sorted(rows))
    return "step,name,value\n" + "".join(f"{line}\n" for line in lines)


def write_held_out(folder: Path, data: Windows | Images) -> None:
    """Write what was held out, as a corpus that surveys read."""
    if isinstance(data, Windows):
        lines = (" ".join(text.split()) for text in data.held_out_texts)
        (folder / HELD_OUT_TEXT).write_text("".join(f"{line}\n" for line in lines if line))
        return
    from PIL import Image

    images = folder / HELD_OUT_IMAGES
    images.mkdir(exist_ok=True)
    for number, pixels in enumerate(data.held_out):
        Image.fromarray(pixels).save(images / f"{number:04}.png")


def parameter_counts(spec: TrainSpec, vocabulary: int) -> tuple[int, int]:
    """Return the parameters of a model that is not built: all, and those outside embeddings."""
    with torch.device("meta"):
        model = build_model(spec, vocabulary)
    whole = sum(each.numel() for each in model.parameters())
    names = ("embed_in", "lm_head")
    matrices = (e.numel() for n, e in model.named_parameters() if n.split(".")[-2] in names)
    return whole, whole - sum(matrices)
