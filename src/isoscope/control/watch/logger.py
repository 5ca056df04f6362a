"""Trackers for a training loop of your own: each returns a function that a watch logs with."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

Log = Callable[[dict[str, float], int], object]  # numbers by name, and the step


class TrackedRun(Protocol):
    """A run of a tracker."""

    def log(self, numbers: dict[str, float], /, *, step: int) -> object:
        """Log numbers at a step."""
        ...


def tensorboard(folder: str | Path) -> Log:
    """Log to event files in a folder."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))

    def log(numbers: dict[str, float], step: int) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return log


def wandb(run: TrackedRun) -> Log:
    """Log to a run of W&B, as `wandb.init` returns it."""

    def log(numbers: dict[str, float], step: int) -> None:
        run.log(numbers, step=step)

    return log


trackio = wandb  # a run of Trackio, as `trackio.init` returns it, logs likewise


def mlflow() -> Log:
    """Log to the active run of MLflow."""
    from mlflow import log_metrics

    return log_metrics
