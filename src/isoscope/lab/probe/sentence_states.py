"""One vector a document out of one site, beside its label: what a classifier learns from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from isoscope.capture.feed import Batch, feed_for
from isoscope.capture.model.pooling import pool_states
from isoscope.lab.batches import batched, corpus_of, prepared_of
from isoscope.lab.probe.labels import labels_for
from isoscope.registry import unknown
from isoscope.site import Site, is_matrix
from isoscope.study.model import ModelSites, subject_of
from isoscope.types import Array

At = Literal["first", "last", "mean"]
WHERE: tuple[At, ...] = ("first", "last", "mean")


@dataclass(frozen=True)
class States:
    """A vector for each document that was long enough, in the order of the corpus."""

    rows: Array  # (documents, d)
    labels: list[Any]  # empty if none were given
    ids: list[str]
    site: str
    at: At
    left_out: int  # documents shorter than two tokens


def states_of(
    model: Any,
    corpus: Any = None,
    labels: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    site: str | None = None,
    at: At | None = None,
    length: int = 512,
    batch: int = 16,
    progress: Callable[[int, int], None] | None = None,
    **given: Any,
) -> States:
    """Return the state of each document at a site: of its first or last token, or the mean.

    As in the paper, encoders with a [CLS] token are read there and decoders at the last
    token, at the final norm. Labels are one a document, or by the id of documents. `progress`
    is told how many documents are done, and of how many.
    """
    subject = subject_of(model, **given)
    opened = corpus_of(corpus)
    marked = [] if labels is None else labels_for(opened, labels)
    site, at = _site(subject, site), _at(subject, at)
    feed = feed_for(subject.loaded, length=length)
    ready = prepared_of(opened, feed)
    parts: list[Array] = []

    def hear(name: str, tensor: Tensor, batch: Batch) -> None:
        real = batch.marks(Site.parse(name).stack, tensor.shape[1]).real.to(tensor.device)
        parts.append(taken(tensor.float(), real, at).cpu().numpy())

    for each in batched([document for _, document in ready], feed, batch):
        with (
            subject.sites.listening(
                [site], lambda name, tensor, each=each: hear(name, tensor, each)
            ) as calls,
            torch.inference_mode(),
        ):
            calls.restart()
            subject.loaded.body(**each.inputs)
        if progress is not None:
            progress(sum(map(len, parts)), len(ready))
    return States(
        rows=np.concatenate(parts),
        labels=[marked[ordinal] for ordinal, _ in ready] if marked else [],
        ids=[opened.id(ordinal) for ordinal, _ in ready],
        site=site,
        at=at,
        left_out=len(opened) - len(ready),
    )


def taken(states: Tensor, real: Tensor, at: At) -> Tensor:
    """Return what stands for documents, (documents, d), from (documents, positions, d)."""
    return pool_states("cls" if at == "first" else at, states, real)


def _site(subject: ModelSites, site: str | None) -> str:
    heard = [each for each in subject.sites.names if not is_matrix(each)]
    if site is None:
        final, stream = subject.site("norm", "out"), subject.site("resid")
        resid = [each for each in heard if Site.parse(each).group == stream]
        return final if final in heard else (resid or heard)[-1]
    if site not in heard:
        raise unknown("site", site, heard)
    return site


def _at(subject: ModelSites, at: str | None) -> At:
    if at is None:
        marks = getattr(subject.loaded.tokenizer, "cls_token_id", None) is not None
        return "first" if marks else "last"
    for known in WHERE:
        if at == known:
            return known
    raise unknown("place of a state", at, WHERE)
