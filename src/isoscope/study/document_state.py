"""The state that stands for a document: of its first or last token, or the mean of all."""

from typing import TYPE_CHECKING, Literal, get_args

from isoscope.registry import unknown
from isoscope.study.model import ModelSites

if TYPE_CHECKING:
    from torch import Tensor

At = Literal["first", "last", "mean"]
PLACES: tuple[At, ...] = get_args(At)
_MODES = {"first": "cls", "last": "last", "mean": "mean"}  # as sentence-transformers call them


def choose_state(subject: ModelSites, at: str | None, *, as_pooled: bool = False) -> At:
    """Return which state to take: the one named, or the usual one of the model.

    That is the first token of models with a [CLS] token and the last of others; with
    `as_pooled`, a model that pools by itself is taken as it does.
    """
    if at is not None and at not in PLACES:
        raise unknown("place of a state", at, PLACES)
    mode = subject.loaded.pooling.mode if as_pooled and subject.loaded.pooling else ""
    has_cls = getattr(subject.loaded.tokenizer, "cls_token_id", None) is not None
    usual = "first" if has_cls else "last"
    name = at or next((place for place, each in _MODES.items() if each == mode), usual)
    return next(place for place in PLACES if place == name)


def take_states(states: "Tensor", real: "Tensor", at: At) -> "Tensor":
    """Return one state per document, (documents, d), from (documents, positions, d)."""
    from isoscope.capture.model.pooling import pool_states

    return pool_states(_MODES[at], states, real)
