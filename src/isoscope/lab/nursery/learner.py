"""A model and its examples: the loss of a batch, held-out loss, and checkpoints."""

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isoscope.capture.model.quiet import quiet
from isoscope.control import Penalty, PenaltyListener, penalised
from isoscope.lab.nursery.architecture import build_model
from isoscope.lab.nursery.figures import Images
from isoscope.lab.nursery.spec import TrainSpec
from isoscope.lab.nursery.windows import Windows, as_pretrained
from isoscope.training.train import check_finite
from isoscope.types import Array

SIDE_BY_SIDE = 32  # held-out examples


class Learner:
    """A model that learns from its data; `step` numbers the batches, for masks."""

    def __init__(
        self, spec: TrainSpec, data: Windows | Images, penalty: Penalty | None
    ) -> None:
        self.spec, self.data = spec, data
        vocabulary = data.vocabulary if isinstance(data, Windows) else 0
        self.model: Any = build_model(spec, vocabulary)
        self.penalty = penalty
        self.listener: PenaltyListener | None = None
        if penalty is not None:
            self.listener = penalised(self.model, penalty)
        self.step = 0

    @property
    def modules(self) -> list[nn.Module]:
        """What is trained, and what is kept with it."""
        return [self.model] if self.penalty is None else [self.model, self.penalty]

    def loss(self, places: Sequence[int]) -> tuple[float, Tensor]:
        """Return the loss of the next batch to record, and the one to minimise."""
        self.step += 1
        with self.listener or nullcontext():
            found = self._loss(self._batch(list(places)))
            penalty = None if self.listener is None else self.listener()
        value = check_finite(float(found.detach()), f"the loss of step {self.step}")
        return value, found if penalty is None else found + penalty

    def first_loss(self, places: Sequence[int]) -> float:
        """Return the loss of the first batch before any step."""
        self.model.eval()
        with torch.no_grad():
            value = float(self._loss(self._batch(list(places), step=1)))
        return check_finite(value, "the loss of step 0")

    def held_out_loss(self) -> float:
        """Return the mean loss per predicted token, or per image."""
        self.model.eval()
        places = self.data.held_out_places
        total = weight = 0.0
        with torch.no_grad():
            for start in range(0, len(places), SIDE_BY_SIDE):
                part = list(places[start : start + SIDE_BY_SIDE])
                inputs, targets = self._held_out(part)
                count = float((targets >= 0).sum())
                total += float(self._loss((inputs, targets))) * count
                weight += count
        self.model.train()
        return check_finite(total / weight, f"the held-out loss after step {self.step}")

    def save(self, folder: Path) -> None:
        """Write a checkpoint as transformers loads it: weights, configs, tokenizer."""
        with quiet():
            self.model.save_pretrained(folder)
            if isinstance(self.data, Windows):
                length = self.spec.train.length
                as_pretrained(self.data.tokenizer, length).save_pretrained(folder)
            else:
                from transformers import ViTImageProcessorPil

                size = {"height": self.model.config.image_size}
                size["width"] = size["height"]
                ViTImageProcessorPil(size=size, do_resize=False).save_pretrained(folder)

    # --- batches --------------------------------------------------------------------------
    def _loss(self, batch: tuple[dict[str, Tensor], Tensor]) -> Tensor:
        inputs, targets = batch
        logits: Tensor = self.model(**inputs).logits
        return cross_entropy(logits.flatten(0, -2), targets.flatten())

    def _batch(
        self, places: list[int], step: int | None = None
    ) -> tuple[dict[str, Tensor], Tensor]:
        data = self.data
        if isinstance(data, Images):
            return _pixels(data.train[places]), torch.from_numpy(data.train_labels[places])
        texts = data.train[places]
        number = self.step if step is None else step
        mask = data.draw_mask(texts, (data.seed, number)) if data.masked else None
        return _tokens(texts, mask)

    def _held_out(self, places: list[int]) -> tuple[dict[str, Tensor], Tensor]:
        data = self.data
        if isinstance(data, Images):
            return _pixels(data.held_out[places]), torch.from_numpy(
                data.held_out_labels[places]
            )
        return _tokens(
            data.held_out[places], data.held_out_mask[places] if data.masked else None
        )


def _tokens(texts: Array, mask: Array | None) -> tuple[dict[str, Tensor], Tensor]:
    """Return inputs and targets; a target below 0 counts for nothing."""
    if mask is None:
        targets = np.full_like(texts, -100)
        targets[:, :-1] = texts[:, 1:]
        return {"input_ids": torch.from_numpy(texts)}, torch.from_numpy(targets)
    inputs = np.where(mask, 1, texts)  # 1 is the mask
    return {"input_ids": torch.from_numpy(inputs)}, torch.from_numpy(
        np.where(mask, texts, -100)
    )


def _pixels(images: Array) -> dict[str, Tensor]:
    """Return images as the processor of the checkpoint would: from -1 to 1, colours first."""
    moved = torch.from_numpy(images).permute(0, 3, 1, 2).float()
    return {"pixel_values": moved / 127.5 - 1.0}
