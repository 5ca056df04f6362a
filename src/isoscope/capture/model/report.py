"""What transformers tells after loading, judged: weights that do not fit are an error."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from torch import nn

from isoscope.errors import IsoscopeError

# Parts of a body that no block reads: many checkpoints leave them out, and they are no site.
UNREAD = {"pooler", "masked_spec_embed", "mask_token", "mask_emb"}


def judged(
    model: nn.Module,
    body: nn.Module,
    loading: dict[str, Any],
    folder: Path,
    say: Callable[[str], None],
) -> None:
    """Raise where blocks would run on weights that were not read; say what else is odd."""
    _same_shapes(loading, folder)
    missing = set(loading["missing_keys"])
    needed = sorted(missing & _names_of(body, model))
    if needed:
        raise IsoscopeError(
            f"expected all weights of {type(model).__name__} in {folder}, got none for "
            f"{shortened(needed)}",
            hint="the config belongs to other weights, or a part of them was not copied",
            slug="model-weights-missing",
        )
    extra = set(loading["unexpected_keys"])
    layers = sorted(name for name in extra if _numberless(name) in _patterns(model))
    if layers:
        raise IsoscopeError(
            f"expected the weights of {type(model).__name__} in {folder}, got more of them "
            f"than its config has places for: {shortened(layers)}",
            hint="the config says fewer layers than the weights have; get the two together",
            slug="model-weights-mismatch",
        )
    if missing:
        say(f"warning: random weights for {shortened(sorted(missing))}, which are not stored")
    if extra:
        say(f"note: not used, as the model has no such part: {shortened(sorted(extra))}")


def shortened(names: Iterable[str]) -> str:
    """Return the first three names and how many more there are."""
    first, *_ = listed = list(names)
    shown = ", ".join([first, *listed[1:3]])
    return shown + (f" and {len(listed) - 3} more" if len(listed) > 3 else "")


def _same_shapes(loading: dict[str, Any], folder: Path) -> None:
    wrong = sorted(loading["mismatched_keys"])
    if wrong:
        name, stored, expected = wrong[0]
        raise IsoscopeError(
            f"expected shape {tuple(expected)} for {name} in {folder}, got {tuple(stored)}",
            hint=f"config and weights do not belong together ({len(wrong)} differ in shape)",
            slug="model-weights-mismatch",
        )


def _names_of(body: nn.Module, model: nn.Module) -> set[str]:
    """Return the names, as the model says them, of what the blocks of its body read."""
    held = {id(tensor) for tensor in (*body.parameters(), *body.buffers())}
    named = (*model.named_parameters(), *model.named_buffers())
    return {
        name
        for name, tensor in named
        if id(tensor) in held and not UNREAD & set(name.split("."))
    }


def _patterns(model: nn.Module) -> set[str]:
    return {_numberless(name) for name in model.state_dict() if re.search(r"\.\d+\.", name)}


def _numberless(name: str) -> str:
    return re.sub(r"(?<=\.)\d+(?=\.)", "#", name)
