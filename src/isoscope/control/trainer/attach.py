"""A penalty or a watch in a trainer of transformers or sentence-transformers: one call."""

from typing import Any

import torch

from isoscope.control.penalty.base import Penalty
from isoscope.control.penalty.isoscore_star import IStar
from isoscope.control.trainer.loop import Hearing
from isoscope.errors import ConfigError

PENALTY, READING = "penalty/", "/reading"  # how names in the log begin and end
NEEDED = ("compute_loss", "log", "add_callback", "state", "args")


def attach(trainer: Any, *things: Any) -> Any:
    """Give a trainer penalties and watches, and return it.

    Two lines are all: `from isoscope.control import IStar, attach` and
    `attach(trainer, IStar(weight=-1.0))`. The logged loss then has the penalty in it, and
    `penalty/...` beside it. State is saved with checkpoints, and read when one is resumed.
    """
    for name in NEEDED:
        if not hasattr(trainer, name):
            raise ConfigError(
                f"expected a trainer of transformers, got {type(trainer).__name__}",
                hint="in Lightning use PenaltyCallback, in a loop of your own penalised",
                slug="trainer-kind",
            )
    for thing in things:
        if isinstance(thing, Penalty):
            _penalise(trainer, thing)
        elif hasattr(thing, "join_trainer"):
            thing.join_trainer(trainer)
        else:
            raise ConfigError(
                f"expected a penalty or a watch to attach, got {type(thing).__name__}",
                hint="give IStar(...), DebiasedIsotropy(...), CosReg(...) or Watch(...)",
                slug="trainer-kind",
            )
    return trainer


def _penalise(trainer: Any, penalty: Penalty) -> None:
    from isoscope.control.trainer.checkpoint import keep  # loads transformers
    from isoscope.control.trainer.epoch import EpochBegin

    added = _Added(trainer, penalty, _free(trainer, f"{PENALTY}{type(penalty).__name__}"))
    trainer.compute_loss = added.loss_of(trainer.compute_loss)
    trainer.log = added.log_of(trainer.log)
    keep(trainer, penalty, f"penalty-{type(penalty).__name__}")
    if isinstance(penalty, IStar) and penalty.towards == "streamed":
        trainer.add_callback(EpochBegin(trainer, penalty))


def _free(trainer: Any, name: str) -> str:
    """Return a name for the log; a second penalty of a kind would hide the first."""
    taken = vars(trainer).setdefault("isoscope_names", [])
    number = taken.count(name)
    taken.append(name)
    return f"{name}-{number}" if number else name


class _Added:
    """What one penalty adds to the loss and to the log of a trainer."""

    def __init__(self, trainer: Any, penalty: Penalty, name: str) -> None:
        self.trainer = trainer
        self.penalty = penalty
        self.name = name
        self.values: list[torch.Tensor] = []
        self.readings: list[float] = []

    def loss_of(self, compute_loss: Any) -> Any:
        def with_penalty(
            model: Any, inputs: Any, return_outputs: bool = False, **named: Any
        ) -> Any:
            if not model.training or not torch.is_grad_enabled():
                return compute_loss(model, inputs, return_outputs=return_outputs, **named)
            self.penalty.step = int(self.trainer.state.global_step)
            with Hearing(model, self.penalty) as heard:
                found = compute_loss(model, inputs, return_outputs=return_outputs, **named)
                loss, output = found if return_outputs else (found, None)
                extra = heard()
            self._note(extra)
            whole = loss + extra.to(loss) / self._share(named.get("num_items_in_batch"))
            return (whole, output) if return_outputs else whole

        return with_penalty

    def log_of(self, log: Any) -> Any:
        def with_penalty(logs: dict[str, float], *given: Any, **named: Any) -> None:
            if "loss" in logs and self.values:
                value = torch.stack(self.values).mean().item()
                logs = {**logs, self.name: value}
                if self.readings:
                    logs[f"{self.name}{READING}"] = sum(self.readings) / len(self.readings)
                self.values, self.readings = [], []
            log(logs, *given, **named)

        return with_penalty

    def _note(self, extra: torch.Tensor) -> None:
        self.values.append(extra.detach().float())
        if self.penalty.reading is not None:
            self.readings.append(self.penalty.reading)

    def _share(self, counted: Any) -> int:
        """Return what the trainer will not divide by: it may have scaled the loss already."""
        trainer = self.trainer
        scaled = getattr(trainer, "loss_is_scaled_for_ga", None)
        if scaled is None:
            scaled = (
                bool(getattr(trainer, "model_accepts_loss_kwargs", False))
                and counted is not None
            ) or getattr(trainer, "compute_loss_func", None) is not None
        return int(getattr(trainer, "current_gradient_accumulation_steps", 1)) if scaled else 1
