"""Another class for a checkpoint, where it uses more of the stored weights."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod

import torch
import transformers
from torch import nn
from transformers import PretrainedConfig

from isoscope.capture.model.config import ModelClass
from isoscope.capture.sites import token_matrices
from isoscope.site import UNEMBED

MASKED, CAUSAL = "MODEL_FOR_MASKED_LM_MAPPING", "MODEL_FOR_CAUSAL_LM_MAPPING"
PAIRED = "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING"
Shapes = Mapping[str, tuple[int, ...]]  # of weights, by name
Build = Callable[[ModelClass], nn.Module]


def class_with_more(
    config: PretrainedConfig,
    model: nn.Module,
    unused: Iterable[str],
    read_shapes: Callable[[], Shapes],
    build: Build,
) -> ModelClass | None:
    """Return the class with a language-model head that uses more weights than a model does.

    `unused` are the stored weights that the model has no place for. None if it uses as many
    as any. A tied head is not stored: a headless model whose stored names have the prefix of
    classes with a head was saved by one of those.
    """
    unused = set(unused)
    if not unused and not _may_have_tied_head(config, model):
        return None
    stored = read_shapes()
    extra = {name: stored[name] for name in unused if name in stored}
    own = _head(model, stored)
    prefix = f"{getattr(model, 'base_model_prefix', None) or '?'}."
    tied = _may_have_tied_head(config, model) and any(
        name.startswith(prefix) for name in stored
    )
    best, most = None, 0
    for kind in candidates(config):
        try:
            with torch.device("meta"):
                shell = build(kind)
        except Exception:  # a class that needs real tensors: its weights are unknown
            continue
        places = {name: tuple(each.shape) for name, each in shell.state_dict().items()}
        gained = sum(prod(s) for name, s in extra.items() if places.get(name) == s)
        gained -= sum(prod(s) for name, s in own.items() if name not in places)
        gained += tied and UNEMBED in token_matrices(shell)  # where nothing else decides
        if gained > most:
            best, most = kind, gained
    return best


def candidates(config: PretrainedConfig) -> Iterator[ModelClass]:
    """Yield the classes with a language-model head that fit a configuration."""
    first = (CAUSAL, MASKED) if getattr(config, "is_decoder", False) else (MASKED, CAUSAL)
    seen: list[ModelClass] = []
    for name in (*first, PAIRED):
        mapping = getattr(transformers, name)
        kind = mapping.get(type(config), None)
        for each in kind if isinstance(kind, tuple) else (kind,):
            if each is not None and each not in seen:
                seen.append(each)
                yield each


def _head(model: nn.Module, stored: Shapes) -> Shapes:
    """Return the stored weights that a model has outside of its body."""
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    if getattr(model, "base_model", model) is model:
        return {}
    names = [name for name in model.state_dict() if not name.startswith(prefix)]
    return {name: stored[name] for name in names if name in stored}


def _may_have_tied_head(config: PretrainedConfig, model: nn.Module) -> bool:
    """Whether a headless model was made of a configuration that names a class nobody has."""
    if getattr(model, "base_model", model) is not model or not config.architectures:
        return False
    named = any(hasattr(transformers, str(name)) for name in config.architectures)
    return not named and bool(getattr(config, "tie_word_embeddings", False))
