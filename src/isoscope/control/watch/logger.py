"""Trackers for a loop of one's own: each gives what a watch logs with."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

Log = Callable[[dict[str, float], int], None]


def tensorboard(folder: str | Path) -> Log:
    """Log to event files in a folder."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder))

    def log(numbers: dict[str, float], step: int) -> None:
        for name, value in numbers.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return log


def wandb(run: Any) -> Log:
    """Log to a run of W&B, as `wandb.init` gives it."""
    return lambda numbers, step: run.log(numbers, step=step)


def trackio(run: Any) -> Log:
    """Log to a run of Trackio, as `trackio.init` gives it."""
    return lambda numbers, step: run.log(numbers, step=step)


def mlflow() -> Log:
    """Log to the active run of MLflow."""
    from mlflow import log_metrics

    def log(numbers: dict[str, float], step: int) -> None:
        log_metrics(numbers, step=step)

    return log
