"""How many positions of a document a model can take."""

from typing import Any

from torch import nn

from isoscope.capture.feed.given import Loaded
from isoscope.errors import ConfigError

SETTINGS = (
    "max_position_embeddings",
    "max_encoder_position_embeddings",
    "max_decoder_position_embeddings",
    "max_seq_len",
)


def longest(loaded: Loaded, length: int) -> int:
    """Return the least of the length asked for and what model, tokenizer and pooling allow."""
    if length < 2:
        raise ConfigError(
            f"expected a length of at least 2, got {length}",
            hint="leave --length out, or give the number of tokens to read of a document",
            slug="length-short",
        )
    bounds = [length, *_settings(loaded.body), *_tables(loaded.body)]
    bounds.append(getattr(loaded.tokenizer, "model_max_length", None))
    bounds.append(getattr(loaded.pooling, "max_seq_length", None))
    return min(int(bound) for bound in bounds if bound is not None and bound > 0)


def _settings(body: nn.Module) -> list[Any]:
    config = getattr(body, "config", None)
    return [getattr(config, name, None) for name in SETTINGS]


def _tables(body: nn.Module) -> list[int]:
    # roberta and its kin count positions from behind the padding index: 514 are 512
    return [
        module.num_embeddings - module.padding_idx - 1
        for name, module in body.named_modules()
        if isinstance(module, nn.Embedding)
        and name.endswith("position_embeddings")
        and module.padding_idx is not None
    ]
