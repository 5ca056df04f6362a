"""The shrinkage matrix of I-STAR, streamed anew at the start of each epoch of a trainer."""

import inspect
from collections.abc import Generator, Iterable, Mapping
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback

from isoscope.control.penalty.isoscore_star import IStar
from isoscope.control.trainer.loop import transformer_in
from isoscope.errors import StreamError


class EpochBegin(TrainerCallback):
    """Streams the matrix of a penalty from the training batches of a trainer."""

    def __init__(self, trainer: Any, penalty: IStar) -> None:
        self.trainer = trainer
        self.penalty = penalty

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stream it, unless a run goes on within an epoch whose matrix was saved."""
        if self.penalty.shrinkage is None or not (state.epoch or 0) % 1:
            restream(self.penalty, self.trainer.model, _batches(self.trainer))


def _batches(trainer: Any) -> Generator[Any]:
    loader = trainer.get_train_dataloader()
    try:
        yield from loader
    finally:
        if hasattr(loader, "end"):  # accelerate takes a loader that was left for the one in use
            loader.end()


def restream(penalty: IStar, model: nn.Module, batches: Iterable[Any]) -> None:
    """Stream the matrix anew, and leave training its random numbers."""
    body = transformer_in(model)
    known = set(inspect.signature(body.forward).parameters)
    with torch.random.fork_rng():
        named = (_inputs(batch, known) for batch in batches)
        penalty.stream(body, named, tokens=penalty.tokens)


def _inputs(batch: Any, known: set[str]) -> dict[str, Any]:
    """Return what of a batch the body of a model takes; the head has the labels."""
    named: Mapping[str, Any] = batch if isinstance(batch, Mapping) else {}
    found = {name: value for name, value in named.items() if name in known}
    if not found:
        raise StreamError(
            "expected training batches that name the inputs of the model, got others",
            hint="towards='running' needs no batches; or call penalty.stream(model, batches) "
            "yourself, with dictionaries as a tokenizer makes them",
            slug="stream-batches",
        )
    return found
