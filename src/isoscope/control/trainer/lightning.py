"""Lightning: callbacks that add a penalty to the loss, or watch the model."""

from collections.abc import Callable, Mapping, Sequence

from lightning.pytorch import Callback, LightningModule, Trainer
from torch import Tensor

from isoscope.control.listening import wrap_method
from isoscope.control.penalty.isoscore_star import IStar
from isoscope.control.penalty.penalty import Penalty
from isoscope.control.trainer.attach import attached_twice
from isoscope.control.trainer.loop import PenaltyListener, stream_epoch
from isoscope.control.watch.watch import Watch
from isoscope.errors import ConfigError

Loss = Tensor | Mapping[str, Tensor] | None  # what a training step returns


class PenaltyCallback(Callback):
    """Adds a penalty to the loss: `Trainer(callbacks=[PenaltyCallback(IStar(-1.0))])`.

    It listens at the sites of the model of transformers inside the module, or at the modules
    named. State is saved with Lightning's checkpoints.
    """

    def __init__(self, penalty: Penalty, modules: Sequence[str] | None = None) -> None:
        self.penalty = penalty
        self.modules = modules
        self.added: Tensor | float = 0.0  # to the loss of the last batch
        self._listener: PenaltyListener | None = None
        self._unwrap: Callable[[], None] | None = None

    @property
    def state_key(self) -> str:
        """The name of its state in a checkpoint, one for each kind of penalty and its sites."""
        kind, sites = type(self.penalty).__name__, self.penalty.sites
        apart = {} if sites == "resid" else {"sites": sites}
        return self._generate_state_key(penalty=kind, modules=self.modules, **apart)

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Put the penalty behind the module's training step."""
        if stage != "fit" or self._unwrap is not None:
            return
        if not pl_module.automatic_optimization:
            raise ConfigError(
                "expected a module that Lightning optimises, got manual optimisation",
                hint="in your training_step use penalised(model, penalty) and add it yourself",
                slug="trainer-kind",
            )
        penalties = [each.penalty for each in _penalty_callbacks(trainer)]
        if sum(each is self.penalty for each in penalties) > 1:
            raise attached_twice(self.penalty)

        def training_step(
            step: Callable[..., Loss], *arguments: object, **named: object
        ) -> Loss:
            self.penalty.step = int(trainer.global_step)
            with self._listening(pl_module) as listener:
                found = step(*arguments, **named)
                if found is None:
                    return None
                extra = listener()
            self.added = extra.detach()
            pl_module.log(f"penalty/{type(self.penalty).__name__}", self.added, on_step=True)
            if isinstance(found, Mapping):
                return {**found, "loss": found["loss"] + extra.to(found["loss"])}
            return found + extra.to(found)

        self._unwrap = wrap_method(pl_module, "training_step", training_step)

    def _listening(self, pl_module: LightningModule) -> PenaltyListener:
        """Return the block that records the sites, which are found the first time."""
        if self._listener is None or not self._listener.listener.fits(pl_module):
            self._listener = PenaltyListener(pl_module, self.penalty, self.modules)
        return self._listener

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Look for the sites before the first step."""
        self._listening(pl_module)

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Stream the matrix of a penalty with towards="streamed"."""
        if isinstance(self.penalty, IStar) and self.penalty.towards == "streamed":
            stream_epoch(self.penalty, pl_module, trainer.train_dataloader or ())

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Leave the module as it was."""
        if stage == "fit" and self._unwrap is not None:
            self._unwrap()
            self._unwrap = None

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        """Leave the module as it was; teardown is not called."""
        self.teardown(trainer, pl_module, "fit")

    def state_dict(self) -> dict[str, Tensor]:
        """Return the state of the penalty."""
        return dict(self.penalty.state_dict())

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Take over the state of the penalty."""
        self.penalty.load_state_dict(state_dict)


def _penalty_callbacks(trainer: Trainer) -> list[PenaltyCallback]:
    callbacks: Sequence[Callback] = getattr(trainer, "callbacks", ())
    return [each for each in callbacks if isinstance(each, PenaltyCallback)]


class WatchCallback(Callback):
    """Watches a module: `Trainer(callbacks=[WatchCallback(Watch(texts, tokenizer=t))])`.

    Numbers go to the loggers of the trainer. Steps are those of the optimiser.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.seen = -1

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Read the model as it came, unless a checkpoint is resumed."""
        self.watch.place(pl_module)
        if self.watch.log is None:
            self.watch.log = lambda numbers, step: _log(trainer, numbers, step)
        if trainer.global_step == 0 and self.watch.read(pl_module, 0):
            trainer.should_stop = True

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: LightningModule, batch: object, batch_idx: int
    ) -> None:
        """Listen to the step that begins, if it is one to be read."""
        if trainer.global_step != self.seen:
            self.seen = trainer.global_step
            self.watch.begin(pl_module, trainer.global_step + 1)

    def on_train_batch_end(
        self,
        trainer: Trainer,
        pl_module: LightningModule,
        outputs: Loss,
        batch: object,
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
        """Release the model."""
        self.watch.close()

    def state_dict(self) -> dict[str, Tensor]:
        """Return the history."""
        return dict(self.watch.state_dict())

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Take over a history."""
        self.watch.load_state_dict(state_dict)


def _loss(trainer: Trainer, pl_module: LightningModule, outputs: Loss) -> float | None:
    """Return the loss of the last batch without penalties, as the module computed it."""
    loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
    if loss is None:
        return None
    # Lightning has divided it by the batches of a step.
    parts = trainer.accumulate_grad_batches if pl_module.automatic_optimization else 1
    return float(loss) * parts - sum(float(each.added) for each in _penalty_callbacks(trainer))


def _log(trainer: Trainer, numbers: dict[str, float], step: int) -> None:
    for logger in trainer.loggers:
        logger.log_metrics(numbers, step=step)
