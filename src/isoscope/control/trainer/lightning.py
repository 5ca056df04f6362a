"""Lightning: callbacks that add a penalty to the loss, or watch the model."""

from collections.abc import Sequence
from typing import Any, cast

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from isoscope.control.penalty.base import Penalty
from isoscope.control.penalty.isoscore_star import IStar
from isoscope.control.trainer.loop import Hearing
from isoscope.control.watch.watch import Watch
from isoscope.errors import ConfigError

WRAPPED = "isoscope_wrapped"


class PenaltyCallback(Callback):
    """Adds a penalty to the loss: `Trainer(callbacks=[PenaltyCallback(IStar(-1.0))])`.

    Its hidden states are those of the model of transformers inside the module, or of the
    modules named. State is saved with Lightning's checkpoints.
    """

    def __init__(self, penalty: Penalty, modules: Sequence[str] | None = None) -> None:
        self.penalty = penalty
        self.modules = modules
        self.added: Tensor | float = 0.0  # to the loss of the last batch

    @property
    def state_key(self) -> str:
        """What its state is called in a checkpoint: penalties of several kinds get along."""
        kind = type(self.penalty).__name__
        return self._generate_state_key(penalty=kind, modules=self.modules)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Put the penalty behind the module's training step."""
        if stage != "fit":
            return
        if not pl_module.automatic_optimization:
            raise ConfigError(
                "expected a module that Lightning optimises, got manual optimisation",
                hint="in your training_step use penalised(model, penalty) and add it yourself",
                slug="trainer-kind",
            )
        own = vars(pl_module).get("training_step")
        if self in _penalisers(own):
            return
        step = pl_module.training_step

        def with_penalty(*given: Any, **named: Any) -> Any:
            self.penalty.step = int(trainer.global_step)
            with Hearing(pl_module, self.penalty, self.modules) as heard:
                found = step(*given, **named)
                return found if found is None else self._added(pl_module, found, heard())

        setattr(with_penalty, WRAPPED, (self, own))
        cast(Any, pl_module).training_step = with_penalty

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stream the matrix of a penalty that wants it so."""
        if isinstance(self.penalty, IStar) and self.penalty.towards == "streamed":
            from isoscope.control.trainer.epoch import restream  # loads transformers

            restream(self.penalty, pl_module, cast(Any, trainer.train_dataloader))

    def _added(self, pl_module: LightningModule, found: Any, extra: Tensor) -> Any:
        name = f"penalty/{type(self.penalty).__name__}"
        self.added = extra.detach()
        pl_module.log(name, self.added, on_step=True)
        if isinstance(found, Tensor):
            return found + extra.to(found)
        told = cast(dict[str, Any], found)
        return {**told, "loss": told["loss"] + extra.to(told["loss"])}

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Leave the module as it was."""
        if stage == "fit":
            _unwrap(pl_module)

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Leave the module as it was; teardown is not called."""
        _unwrap(pl_module)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the penalty."""
        return dict(self.penalty.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the state of the penalty."""
        self.penalty.load_state_dict(state_dict)


def _penalisers(step: Any) -> list[PenaltyCallback]:
    """Return who has wrapped a training step, the last first."""
    found: list[PenaltyCallback] = []
    while hasattr(step, WRAPPED):
        callback, step = getattr(step, WRAPPED)
        found.append(callback)
    return found


def _unwrap(pl_module: LightningModule) -> None:
    """Take away what penalties put around a training step, all of it."""
    own = vars(pl_module).get("training_step")
    if not _penalisers(own):
        return
    while hasattr(own, WRAPPED):
        own = getattr(own, WRAPPED)[1]
    if own is None:
        del pl_module.training_step
    else:
        cast(Any, pl_module).training_step = own


class WatchCallback(Callback):
    """Watches a module: `Trainer(callbacks=[WatchCallback(Watch(texts, tokenizer=t))])`.

    Numbers go to the loggers of the trainer. Steps are those of the optimiser.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.seen = -1

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Read the model as it came, unless this goes on from a checkpoint."""
        if self.watch.log is None:
            self.watch.log = lambda numbers, step: _logged(trainer, numbers, step)
        if trainer.global_step == 0 and self.watch.read(pl_module, 0):
            trainer.should_stop = True

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Listen to the step that begins, if it is one to be read."""
        if trainer.global_step != self.seen:
            self.seen = trainer.global_step
            self.watch.begin(pl_module, trainer.global_step + 1)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        """Read, log and judge, if a step of the optimiser was made and it is time."""
        self.watch.close()
        if trainer.global_step == self.seen:  # gradients are being accumulated
            return
        if self.watch.end(pl_module, trainer.global_step, _loss(trainer, pl_module, outputs)):
            trainer.should_stop = True

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Let go of the model."""
        self.watch.close()

    def state_dict(self) -> dict[str, Any]:
        """Return the history."""
        return dict(self.watch.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a history."""
        self.watch.load_state_dict(state_dict)


def _loss(trainer: Trainer, pl_module: LightningModule, outputs: Any) -> Any:
    """Return the loss of the last batch without penalties, as the module gave it."""
    loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
    if loss is None:
        return None
    penalties = [
        each for each in cast(Any, trainer).callbacks if isinstance(each, PenaltyCallback)
    ]
    # Lightning has divided it by the batches of a step.
    parts = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1
    return float(loss) * parts - sum(float(each.added) for each in penalties)


def _logged(trainer: Trainer, numbers: dict[str, float], step: int) -> None:
    for logger in trainer.loggers:
        logger.log_metrics(numbers, step=step)
