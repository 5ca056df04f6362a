"""One object per trainer of transformers that adds penalties to its loss and runs watches.

Numbers go through the trainer's own log: a callback that changes the logs it is shown
reaches neither the history nor any tracker.
"""

import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import (
    Trainer,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)

from isoscope.control.listening import refuse_copies, wrap_method
from isoscope.control.penalty.isoscore_star import IStar
from isoscope.control.penalty.penalty import Penalty
from isoscope.control.trainer.loop import PenaltyListener, stream_epoch
from isoscope.control.watch.alert import LOSS
from isoscope.control.watch.watch import Watch
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError


@dataclass
class AttachedPenalty:
    """A penalty in a trainer, and what it added since the last entry of the log."""

    name: str  # in the log
    penalty: Penalty
    listener: PenaltyListener
    values: list[Tensor] = field(default_factory=list[Tensor])
    readings: list[float] = field(default_factory=list[float])

    def listening(self, model: nn.Module) -> PenaltyListener:
        """Return the block that records the sites of the model of this step."""
        if not self.listener.listener.fits(model):  # a trainer may make its model anew
            self.listener = PenaltyListener(model, self.penalty)
        return self.listener

    def value(self) -> Tensor:
        """Return the penalty of the passes that were recorded, and note it for the log."""
        value = self.listener()
        self.values.append(value.detach().float())
        if self.penalty.reading is not None:
            self.readings.append(self.penalty.reading)
        return value

    def numbers(self) -> tuple[float, dict[str, float]]:
        """Return the mean penalty since the last entry, and what the log shows of it."""
        if not self.values:
            return 0.0, {}
        mean = torch.stack(self.values).mean().item()
        numbers = {self.name: mean}
        if self.readings:
            numbers[f"{self.name}/reading"] = sum(self.readings) / len(self.readings)
        self.values, self.readings = [], []
        return mean, numbers


class Attachment(TrainerCallback):
    """All penalties and watches of one trainer: around its loss, log and training."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer
        self.penalties: list[AttachedPenalty] = []
        self.watches: list[Watch] = []
        self.files: dict[str, Penalty | Watch] = {}  # whose state is saved under which name
        self.resumed: Path | None = None
        wrap_method(trainer, "compute_loss", self._compute_loss)
        wrap_method(trainer, "log", self._log)
        wrap_method(trainer, "train", self._train)
        trainer.add_callback(self)

    @classmethod
    def of(cls, trainer: Trainer) -> "Attachment":
        """Return the one of a trainer, made if there is none."""
        there = [each for each in trainer.callback_handler.callbacks if isinstance(each, cls)]
        return there[0] if there else cls(trainer)

    @property
    def model(self) -> nn.Module:
        """The model of the trainer as it is now; a trainer may make it anew."""
        assert self.trainer.model is not None
        return self.trainer.model

    def add(self, thing: Penalty | Watch) -> None:
        """Add a penalty or a watch; its sites are looked for in the model at once."""
        # Numbered within its kind: the order of kinds may be another when a run is resumed.
        number = sum(type(each) is type(thing) for each in self.files.values())
        if isinstance(thing, Watch):
            kind = "watch"
            thing.place(self.model)
            if thing.log is None:
                thing.log = lambda numbers, step: self.trainer.log(numbers)
            self.watches.append(thing)
        else:
            kind = f"penalty-{type(thing).__name__}"
            name = f"penalty/{type(thing).__name__}" + (f"-{number}" if number else "")
            self.penalties.append(
                AttachedPenalty(name, thing, PenaltyListener(self.model, thing))
            )
        self.files[f"{kind}-{number}.safetensors"] = thing

    def _compute_loss(
        self,
        compute_loss: Callable[..., Tensor | tuple[Tensor, object]],
        model: nn.Module,
        inputs: Mapping[str, object],
        return_outputs: bool = False,
        **keywords: Tensor | int | None,
    ) -> Tensor | tuple[Tensor, object]:
        if not model.training or not torch.is_grad_enabled():
            return compute_loss(model, inputs, return_outputs=return_outputs, **keywords)
        with ExitStack() as stack:
            for each in self.penalties:
                each.penalty.step = int(self.trainer.state.global_step)
                stack.enter_context(each.listening(model))
            found = compute_loss(model, inputs, return_outputs=return_outputs, **keywords)
            loss, output = found if isinstance(found, tuple) else (found, None)
            share = self._share(keywords.get("num_items_in_batch"))
            for each in self.penalties:
                loss = loss + each.value().to(loss) / share
        return (loss, output) if return_outputs else loss

    def _share(self, items: Tensor | int | None) -> int:
        """Return what a penalty is divided by, so that it is accumulated as the task loss is.

        A trainer divides a loss that is the mean of its batch by the number of batches of a
        step. A loss that is normalised over the whole step already is only summed.
        """
        trainer = self.trainer
        scaled = getattr(trainer, "loss_is_scaled_for_ga", None)
        if scaled is None:
            counted = bool(trainer.model_accepts_loss_kwargs) and items is not None
            scaled = counted or trainer.compute_loss_func is not None
        return int(getattr(trainer, "current_gradient_accumulation_steps", 1)) if scaled else 1

    def _log(
        self,
        log: Callable[..., None],
        logs: dict[str, float],
        *rest: float | None,
        **named: float,
    ) -> None:
        if LOSS in logs:
            task = float(logs[LOSS])
            for each in self.penalties:
                mean, numbers = each.numbers()
                task -= mean
                logs = {**logs, **numbers}
            for watch in self.watches:
                watch.saw_loss(self.trainer.state.global_step, task)
        log(logs, *rest, **named)

    def _train(
        self,
        train: Callable[..., object],
        resume_from_checkpoint: str | Path | bool | None = None,
        *rest: object,
        **named: object,
    ) -> object:
        """Note the folder that is resumed, and release the model also after an exception.

        Callbacks are notified of neither.
        """
        known = isinstance(resume_from_checkpoint, str | Path)
        self.resumed = Path(resume_from_checkpoint) if known else None
        try:
            return train(resume_from_checkpoint, *rest, **named)
        finally:
            for watch in self.watches:
                watch.close()

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Load the state of the checkpoint that is resumed, or read the model as it came."""
        folder = self.resumed or checkpoint_of(args, state)
        for name, thing in self.files.items():
            if state.global_step:
                load_state(thing, folder / name)
        for watch in self.watches:
            refuse_copies(self.trainer.model_wrapped or self.model)
            if watch.tokenizer is None:
                processor = getattr(self.trainer, "processing_class", None)
                watch.tokenizer = getattr(processor, "tokenizer", processor)
            if state.global_step == 0 and watch.read(self.model, 0):
                control.should_training_stop = True

    def on_epoch_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Stream shrinkage matrices, unless a run is resumed inside an epoch that has one."""
        starts = not (state.epoch or 0) % 1
        for each in self.penalties:
            penalty = each.penalty
            if not isinstance(penalty, IStar) or penalty.towards != "streamed":
                continue
            if starts or penalty.shrinkage is None:
                stream_epoch(penalty, self.model, _train_batches(self.trainer))

    def on_step_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Let watches listen to the step that begins, if it is one to be read."""
        for watch in self.watches:
            watch.begin(self.model, state.global_step + 1)

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Let watches read, log and judge, if it is time."""
        for watch in self.watches:
            due = control.should_log  # logging now would cancel the trainer's own of this step
            if watch.end(self.model, state.global_step):
                control.should_training_stop = True
            control.should_log = due

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Write all states beside what the trainer has just saved."""
        from safetensors.torch import save_file

        folder = checkpoint_of(args, state)
        if state.is_world_process_zero and folder.is_dir():
            for name, thing in self.files.items():
                tensors = {key: t.contiguous().cpu() for key, t in thing.state_dict().items()}
                save_file(tensors, folder / name)


def load_state(thing: Penalty | Watch, path: Path) -> None:
    """Load the state of an object; a checkpoint without one is warned of."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        warnings.warn(
            f"{path.parent.name} has no {path.name}: {type(thing).__name__} starts anew in a "
            "run that is resumed",
            stacklevel=2,
        )
        return
    try:
        thing.load_state_dict(load_file(path))
    except (SafetensorError, RuntimeError, KeyError, ValueError) as error:
        raise ConfigError(
            f"expected the state of {type(thing).__name__} in {path.name}, got something else",
            hint="attach what was attached when the checkpoint was saved, or remove the file "
            "to start anew",
            slug="checkpoint-state",
        ) from error


def checkpoint_of(args: TrainingArguments, state: TrainerState) -> Path:
    """Return the folder of the checkpoint of this step."""
    return Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"


def _train_batches(trainer: Trainer) -> Generator[Mapping[str, object]]:
    loader = trainer.get_train_dataloader()
    try:
        yield from loader
    finally:
        # accelerate takes a loader that was left for the one in use
        getattr(loader, "end", lambda: None)()
