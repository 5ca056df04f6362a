"""State that is saved with a trainer's checkpoints, and read when one is resumed."""

import warnings
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor
from transformers import TrainerCallback

from isoscope.errors import ConfigError


class Stateful(Protocol):
    """A penalty, or a watch."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state as tensors."""
        ...

    def load_state_dict(self, state: dict[str, Tensor], /) -> Any:
        """Take over a state."""
        ...


class Keeper(TrainerCallback):
    """Saves a module's state into every checkpoint, and loads it from the one resumed."""

    def __init__(self, trainer: Any, module: Stateful, name: str) -> None:
        self.trainer = trainer
        self.module = module
        self.file = f"{name}.safetensors"
        self.resumed: Path | None = None
        trainer.train = self._noting(trainer.train)

    def _noting(self, train: Any) -> Any:
        """Note the folder a run is resumed from: callbacks are not told."""

        def noted(resume_from_checkpoint: Any = None, *given: Any, **named: Any) -> Any:
            known = isinstance(resume_from_checkpoint, str | Path)
            self.resumed = Path(resume_from_checkpoint) if known else None
            return train(resume_from_checkpoint, *given, **named)

        return noted

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the state beside what the trainer has just saved."""
        from safetensors.torch import save_file

        folder = checkpoint_of(args, state)
        if state.is_world_process_zero and folder.is_dir():
            kept = {name: t.contiguous().cpu() for name, t in self.module.state_dict().items()}
            save_file(kept, folder / self.file)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Load the state of the checkpoint that is gone on from."""
        path = (self.resumed or checkpoint_of(args, state)) / self.file
        if state.global_step == 0:
            return
        if path.is_file():
            self._load(path)
        else:
            warnings.warn(
                f"{path.parent.name} has no {self.file}: {type(self.module).__name__} begins "
                "anew in a run that is resumed",
                stacklevel=2,
            )

    def _load(self, path: Path) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            self.module.load_state_dict(load_file(path))
        except (SafetensorError, RuntimeError, KeyError, ValueError) as error:
            raise ConfigError(
                f"expected the state of {type(self.module).__name__} in {path.name}, "
                "got something else",
                hint="attach what was attached when the checkpoint was saved, or remove the "
                "file to begin anew",
                slug="checkpoint-state",
            ) from error


def keep(trainer: Any, module: Stateful, kind: str) -> None:
    """Keep a state with a trainer's checkpoints, numbered within its kind.

    So penalties and watches may be attached in any order when a run is resumed.
    """
    files = [
        each.file for each in trainer.callback_handler.callbacks if isinstance(each, Keeper)
    ]
    number = sum(file.rpartition("-")[0] == kind for file in files)
    trainer.add_callback(Keeper(trainer, module, f"{kind}-{number}"))


def checkpoint_of(args: Any, state: Any) -> Path:
    """Return the folder of the checkpoint of this step."""
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"
