"""Watch in a trainer of transformers: numbers go through trainer.log, so that they arrive.

A callback that changes the logs it is shown prints numbers that reach neither the history
nor any tracker; calling the trainer's own log does.
"""

from collections.abc import Mapping
from functools import wraps
from typing import Any

from transformers import TrainerCallback

from isoscope.control.trainer.attach import PENALTY, READING
from isoscope.control.trainer.checkpoint import keep
from isoscope.control.trainer.loop import one_copy
from isoscope.control.watch.alert import LOSS
from isoscope.control.watch.watch import Watch


class TrainerWatch(TrainerCallback):
    """Calls a watch at the steps of a trainer."""

    def __init__(self, trainer: Any, watch: Watch) -> None:
        self.trainer = trainer
        self.watch = watch

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Read the model as it came, unless this goes on from a checkpoint."""
        one_copy(self.trainer.model_wrapped)
        if self.watch.tokenizer is None:
            self.watch.tokenizer = _tokenizer(self.trainer)
        if state.global_step == 0 and self.watch.read(self.trainer.model, 0):
            control.should_training_stop = True

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Listen to the step that begins, if it is one to be read."""
        self.watch.begin(self.trainer.model, state.global_step + 1)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Read, log and judge, if it is time."""
        wanted = control.should_log  # logging now would cancel the trainer's own of this step
        if self.watch.end(self.trainer.model, state.global_step):
            control.should_training_stop = True
        control.should_log = wanted

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Note the loss, for the rules that look at it."""
        if logs and LOSS in logs:
            self.watch.saw_loss(state.global_step, task_loss(logs))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Let go of the model."""
        self.watch.close()


def joined(trainer: Any, watch: Watch) -> None:
    """Put a watch into a trainer, and its history into the trainer's checkpoints."""
    if watch.log is None:
        watch.log = lambda numbers, step: trainer.log(numbers)
    keep(trainer, watch, "watch")
    trainer.add_callback(TrainerWatch(trainer, watch))
    trainer.train = _letting_go(trainer.train, watch)


def _letting_go(train: Any, watch: Watch) -> Any:
    """Let go of the model when training ends with an exception: callbacks are not told."""

    @wraps(train)
    def trained(*given: Any, **named: Any) -> Any:
        try:
            return train(*given, **named)
        finally:
            watch.close()

    return trained


def task_loss(logs: Mapping[str, Any]) -> float:
    """Return the loss that was logged without the penalties that were logged beside it."""
    added = [
        float(value)
        for name, value in logs.items()
        if name.startswith(PENALTY) and not name.endswith(READING)
    ]
    return float(logs[LOSS]) - sum(added)


def _tokenizer(trainer: Any) -> Any:
    found = getattr(trainer, "processing_class", None)
    return getattr(found, "tokenizer", found)
