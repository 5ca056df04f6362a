"""What all penalties share: layers, real tokens, the budget, the weight and the counting."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.control.penalty.cloud import Cloud, Tokens
from isoscope.control.penalty.fused import Evaluation, Score
from isoscope.control.penalty.hidden import Layers, chosen_layers
from isoscope.control.penalty.schedule import Factor, Schedule
from isoscope.control.world import Join
from isoscope.errors import ConfigError


class Penalty(nn.Module, ABC):
    """A term of the loss, computed from hidden states; zero, never NaN, where undefined.

    Call it as `penalty(hidden, mask)`. Hidden states are a tensor (batch, time, d) or
    (n, d), a list of such tensors, or the output of a model called with
    `output_hidden_states=True`; the mask has a 1 for every real token. Only real tokens
    count, at most `rows` of them, drawn anew at every call from a seed.

    With `torch.distributed` the batches of all processes are one cloud (`join`); each
    process then has to call the penalty equally often.
    """

    def __init__(
        self,
        weight: float = 1.0,
        layers: Layers = "all",
        rows: int | None = 2048,
        *,
        per_layer: bool = False,
        warmup: int = 0,
        schedule: Factor | None = None,
        accumulate: int = 1,
        seed: int = 0,
        join: bool = True,
    ) -> None:
        super().__init__()
        self.schedule = Schedule(weight, warmup, schedule, accumulate)
        self.layers = layers
        self.rows = _checked_rows(rows)
        self.per_layer = per_layer
        self.seed = _checked_seed(seed)
        self.join = join
        self.call = 0  # training calls so far
        self.step: int | None = None  # of the optimiser, where a trainer says which it is
        self.reading: float | None = None  # the measure at the last call, None if undefined

    @property
    def weight(self) -> float:
        """The weight of the next call."""
        return self._weight(self.call)

    def _weight(self, call: int) -> float:
        found = self.schedule
        return found.at(call) if self.step is None else found.at_step(self.step)

    @abstractmethod
    def _score(self, number: int) -> Score:
        """Return what is read off the cloud of this number."""

    def _measure(self, value: float) -> float:
        """Return the measure that belongs to a value of the score."""
        return value

    def _prepare(self, layers: list[Tensor]) -> None:
        """Look at the layers before anything is computed."""

    def _finish(self, scores: list[Any]) -> None:
        """Look at the scores once all values are there."""

    # Outside a compiled graph: which rows are real is known only once the batch is there.
    @torch.compiler.disable
    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, hidden: Any, mask: Any = None, *, documents: Any = None
    ) -> Tensor:
        """Return weight times the score of the hidden states, a scalar.

        `documents` numbers what belongs together: one number a sequence, or one a token
        where several documents are packed into a sequence. Without it a sequence is a
        document, and so is each row of a tensor (n, d).
        """
        layers = chosen_layers(hidden, self.layers)
        if not self.per_layer:
            same_width(layers)
        self._prepare(layers)
        number = self._counted()
        weight = self._weight(number)
        join = Join.found(weight != 0 and self.join and self._trains())
        tokens = Tokens.of(layers[0], mask, documents, join)
        if weight == 0 or tokens.total < 2:  # one token has no shape, in however many layers
            self.reading = None
            return Evaluation(None, None, Join()).of(layers)
        clouds = [[layer] for layer in layers] if self.per_layer else [layers]
        self._look(tokens)
        values: list[Tensor] = []
        evaluations: list[Evaluation] = []
        for place, cloud in enumerate(clouds):
            seed = (self.seed, number, place)
            halved = self._in_halves(tokens)
            chosen = Cloud.of(tokens, cloud, self.rows, seed, halved=halved)
            evaluations.append(Evaluation(self._score(place), chosen, join))
            values.append(evaluations[-1].of(cloud))
        self._finish([each.score for each in evaluations])
        self._note(evaluations)
        value = values[0] if len(values) == 1 else torch.stack(values).mean()
        return value * weight

    def _in_halves(self, tokens: Tokens) -> bool:
        return False

    def _look(self, tokens: Tokens) -> None:
        """Look at the tokens before clouds are made of them."""

    def _note(self, evaluations: Sequence[Evaluation]) -> None:
        seen = [each.outcome for each in evaluations if each.outcome.defined]
        read = [self._measure(each.value) for each in seen]
        self.reading = sum(read) / len(read) if read else None

    def _counted(self) -> int:
        """Return the number of this call; only calls that train are counted."""
        if recomputing():
            return max(self.call - 1, 0)
        number = self.call
        self.call += self._counts()
        return number

    def _trains(self) -> bool:
        return self.training and torch.is_grad_enabled()

    def _counts(self) -> bool:
        """Whether this call trains, and is not one that is made again in a backward pass."""
        return self._trains() and not recomputing()

    def _warn_once(self, message: str) -> None:
        if not getattr(self, "_warned", False):
            self._warned = True
            warnings.warn(message, stacklevel=5)

    def get_extra_state(self) -> Tensor:
        """Return the count of calls, so that a resumed run goes on where it was."""
        return torch.tensor([self.call])

    def set_extra_state(self, state: Tensor) -> None:
        """Take over the count of calls."""
        self.call = int(state[0])

    def extra_repr(self) -> str:
        """Return the settings."""
        return f"weight={self.schedule.weight:g}, layers={self.layers!r}, rows={self.rows}"


def recomputing() -> bool:
    """Whether this forward pass only repeats one, inside a backward pass (checkpointing)."""
    return torch._C._current_graph_task_id() != -1  # pyright: ignore[reportPrivateUsage]


def _checked_rows(rows: Any) -> int | None:
    if rows is not None and (not isinstance(rows, int) or rows < 2):
        raise ConfigError(
            f"expected a budget of 2 rows or more, got {rows!r}",
            hint="give a whole number, or None to take every real token",
            slug="penalty-rows",
        )
    return rows


def _checked_seed(seed: Any) -> int:
    if not isinstance(seed, int) or seed < 0:
        raise ConfigError(
            f"expected a whole number of 0 or more as seed, got {seed!r}",
            hint="any such number will do; the same one draws the same rows",
            slug="penalty-seed",
        )
    return seed


def same_width(layers: Sequence[Tensor]) -> None:
    """Refuse layers whose rows cannot be in one cloud."""
    widths = sorted({layer.shape[-1] for layer in layers})
    if len(widths) > 1:
        raise ConfigError(
            f"expected layers of one width, got widths {widths}",
            hint="take each layer by itself with per_layer=True, or choose layers",
            slug="penalty-layers",
        )
