"""Held-out texts as batches, a fixed few of them: what a watch reads again and again."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from isoscope.errors import ConfigError

BATCH = 16


def checked_probes(probes: Sequence[Any] | None) -> Sequence[Any] | None:
    """Return a list of texts or batches, or refuse one text, one batch, or none at all."""
    if isinstance(probes, str | Mapping):
        raise _probes(f"expected a list of texts or batches to watch, got one {_kind(probes)}")
    if probes is not None and not len(probes):
        raise _probes("expected texts or batches to watch, got an empty list")
    return probes


def _kind(probe: Any) -> str:
    return "text" if isinstance(probe, str) else "batch"


def probe_batches(
    probes: Sequence[Any],
    tokenizer: Any,
    *,
    length: int,
    tokens: int,
    rank: int = 0,
    size: int = 1,
) -> list[dict[str, Tensor]]:
    """Return batches of texts up to so many tokens, every `size`-th text for this process.

    Batches that are dictionaries of tensors already are taken as they are.
    """
    if all(isinstance(each, Mapping) for each in probes):
        return [dict(cast(Mapping[str, Tensor], each)) for each in probes[rank::size]]
    if not all(isinstance(each, str) for each in probes):
        raise _probes("expected texts or batches to watch, got something else")
    if tokenizer is None:
        raise _probes("expected a tokenizer for the texts to watch, got none")
    padding = getattr(tokenizer, "pad_token", None)
    kept: list[list[int]] = []
    left = tokens
    for text in probes:
        ids = list(tokenizer(text, truncation=True, max_length=length)["input_ids"])
        if len(ids) < 2 or not text.strip():
            continue
        kept.append(ids)
        left -= len(ids)
        if left <= 0:
            break
    if len(kept) < 2:
        raise _probes(f"expected at least 2 texts of two tokens to watch, got {len(kept)}")
    fill = int(tokenizer.pad_token_id) if padding is not None else 0
    mine = kept[rank::size]
    return [_padded(mine[at : at + BATCH], fill) for at in range(0, len(mine), BATCH)]


def _padded(rows: list[list[int]], fill: int) -> dict[str, Tensor]:
    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), fill, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def _probes(problem: str) -> ConfigError:
    return ConfigError(
        problem,
        hint="give a list of texts and the tokenizer, or dictionaries of tensors as the model "
        "takes them; or probes=None to watch training batches alone",
        slug="watch-probes",
    )
