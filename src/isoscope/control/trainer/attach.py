"""Penalties and watches in a trainer of transformers or sentence-transformers: one call."""

from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

from isoscope.control.penalty.penalty import Penalty
from isoscope.control.watch.watch import Watch
from isoscope.errors import ConfigError

if TYPE_CHECKING:
    from transformers import Trainer

NEEDED = ("compute_loss", "log", "add_callback", "state", "args")
AnyTrainer = TypeVar("AnyTrainer", bound="Trainer")
_attached: "WeakSet[Penalty | Watch]" = WeakSet()


def attach(trainer: AnyTrainer, *things: Penalty | Watch) -> AnyTrainer:
    """Add penalties and watches to a trainer, and return it.

    Two lines are all: `from isoscope.control import IStar, attach` and
    `attach(trainer, IStar(weight=-1.0))`. The logged loss then includes the penalty, with
    `penalty/...` beside it. State is saved with checkpoints, and read when one is resumed.
    """
    if not all(hasattr(trainer, name) for name in NEEDED):
        raise ConfigError(
            f"expected a trainer of transformers, got {type(trainer).__name__}",
            hint="in Lightning use PenaltyCallback, in a loop of your own penalised",
            slug="trainer-kind",
        )
    for number, thing in enumerate(things):
        if not isinstance(thing, Penalty | Watch):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(
                f"expected a penalty or a watch to attach, got {type(thing).__name__}",
                hint="give IStar(...), DebiasedIsotropy(...), CosReg(...) or Watch(...)",
                slug="trainer-kind",
            )
        if thing in _attached or thing in things[:number]:
            raise attached_twice(thing)
    from isoscope.control.trainer.huggingface import Attachment  # loads transformers

    attachment = Attachment.of(trainer)
    for thing in things:
        attachment.add(thing)
        _attached.add(thing)
    return trainer


def attached_twice(thing: Penalty | Watch) -> ConfigError:
    """Return what says that an object has its trainer already."""
    kind = type(thing).__name__
    return ConfigError(
        f"cannot attach one {kind} twice",
        hint=f"its counts and state belong to one training run: make another {kind}(...)",
        slug="attached-twice",
    )
