"""Hidden states as they come: a tensor, a list of layers, or the output of a model."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from isoscope.errors import PenaltyError
from isoscope.types import Array

Layers = str | int | Sequence[int]  # "all", "last", or which, from 0
MISSING = object()


def chosen_layers(hidden: Any, layers: Layers) -> list[Tensor]:
    """Return the tensors of the layers asked for, each (batch, time, d) or (n, d).

    The first entry of a model's `hidden_states` is what goes into block 0 and no layer, so
    it is left out; a list or tuple is taken as it is given.
    """
    given = _given(hidden)
    picked = [given[i] for i in _numbers(layers, len(given))]
    first = picked[0]
    for each in picked:
        if each.shape[:-1] != first.shape[:-1]:
            raise PenaltyError(
                f"expected layers of the same rows {tuple(first.shape[:-1])}, "
                f"got {tuple(each.shape[:-1])}",
                hint="give the hidden states of one batch, all of one stack of layers",
                slug="hidden-states-kind",
            )
    return picked


def _given(hidden: Any) -> list[Tensor]:
    if isinstance(hidden, Tensor):
        return [_checked(hidden)]
    states = _states(hidden)
    if states is not MISSING:
        return [_checked(each) for each in states[1:]]
    if isinstance(hidden, Sequence) and not isinstance(hidden, str) and len(hidden):
        return [_checked(each) for each in cast(Sequence[Any], hidden)]
    raise _not_hidden(hidden)


def _states(hidden: Any) -> Any:
    """Return what a model output has as hidden states; MISSING if this is no output."""
    is_map = isinstance(hidden, Mapping)
    if not is_map and not hasattr(hidden, "hidden_states"):
        return MISSING
    found = (
        cast(Mapping[str, Any], hidden).get("hidden_states") if is_map else hidden.hidden_states
    )
    if found is None or len(found) < 2:
        kept = [key for key in ("encoder_hidden_states", "decoder_hidden_states") if
                getattr(hidden, key, None) is not None]  # fmt: skip
        raise PenaltyError(
            "expected a model output with hidden states, got one without",
            hint=f"this model has two stacks: give output.{kept[-1]}[1:] and its mask"
            if kept
            else "call the model with output_hidden_states=True, or set "
            "model.config.output_hidden_states = True once",
            slug="hidden-states-missing",
        )
    return found


def _checked(tensor: Any) -> Tensor:
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
        raise _not_hidden(tensor)
    if tensor.ndim not in (2, 3):
        raise PenaltyError(
            f"expected hidden states (batch, time, d) or rows (n, d), got {tensor.ndim} "
            f"dimensions {tuple(tensor.shape)}",
            hint="flatten what is neither batch nor width into time",
            slug="hidden-states-kind",
        )
    return tensor


def _not_hidden(thing: Any) -> PenaltyError:
    kind = str(thing.dtype) if isinstance(thing, Tensor) else type(thing).__name__
    return PenaltyError(
        f"expected a tensor of floats, a list of them or a model output, got {kind}",
        hint="give the output of a model called with output_hidden_states=True",
        slug="hidden-states-kind",
    )


def _numbers(layers: Layers, count: int) -> list[int]:
    if layers == "all":
        return list(range(count))
    if layers == "last":
        return [count - 1]
    wanted = [layers] if isinstance(layers, int) else list(cast(Sequence[Any], layers))
    if not wanted:
        raise PenaltyError(
            "expected layers, got an empty list",
            hint="layers count from 0; -1, or 'last', is the last, 'all' is every one",
            slug="penalty-layers",
        )
    for number in wanted:
        if not isinstance(number, int) or not -count <= number < count:
            raise PenaltyError(
                f"expected layers from 0 to {count - 1}, got {number!r}",
                hint="layers count from 0; -1, or 'last', is the last, 'all' is every one",
                slug="penalty-layers",
            )
    return [number % count for number in wanted]


def real_places(hidden: Tensor, mask: Any) -> Array | None:
    """Return for each place of the flattened batch whether it is real; None if all are."""
    if mask is None:
        return None
    given = torch.as_tensor(mask).detach()
    if given.shape != hidden.shape[:-1]:
        raise PenaltyError(
            f"expected a mask of shape {tuple(hidden.shape[:-1])}, got {tuple(given.shape)}",
            hint="give the tokenizer's attention_mask: 1 for a real token, 0 for padding",
            slug="mask-shape",
        )
    flat = given.reshape(-1).cpu()
    if flat.is_floating_point() and not bool((flat >= 0).all()):  # NaN is neither
        raise PenaltyError(
            "expected a mask of ones and zeros, got negative numbers or NaN",
            hint="this is a mask to be added to scores; give the tokenizer's attention_mask",
            slug="mask-shape",
        )
    return (flat != 0).numpy()
