"""Images as a vision model takes them: what its own processor makes of them."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from isoscope.capture.feed.base import (
    Batch,
    Feed,
    Prepared,
    config_of,
    missing_processor,
    patch_marks,
    wrong_kind,
)
from isoscope.capture.model.load import Loaded, Processor
from isoscope.errors import ConfigError
from isoscope.types import Array, Document

FIRST_STAGE = 4  # pixels a side of a place, in convolutional networks that do not say


class ImageFeed(Feed):
    """Pixels, resized, cropped and normalised as the model's folder says."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded.body)
        processor = getattr(loaded.processor, "image_processor", loaded.processor)
        if processor is None:
            raise missing_processor("an image")
        self.processor: Processor = processor
        self.config = config_of(loaded.body)

    def prepare(self, document: Document) -> Prepared | None:
        """Return the pixels of an image."""
        image = document.content
        if (
            not isinstance(image, np.ndarray)
            or image.dtype != np.uint8
            or image.shape[2:] != (3,)
            or 0 in image.shape
        ):
            raise wrong_kind(document, "an image")
        ready = self.processor(
            images=image, return_tensors="np", input_data_format="channels_last"
        )
        pixels = np.asarray(ready["pixel_values"][0], dtype=np.float32)
        places = self.patches(pixels) or _places(pixels, FIRST_STAGE, FIRST_STAGE)
        inputs = {"pixel_values": pixels}
        return Prepared(document.id, inputs, length=places, cost=places, truncated=False)

    def collate(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the images side by side."""
        images = [each.inputs["pixel_values"] for each in prepared]
        shapes = {image.shape for image in images}
        if len(shapes) > 1:
            one, two, *_ = sorted(shapes)
            raise ConfigError(
                f"expected images of one size, got {one[1:]} and {two[1:]}",
                hint="resize the images, or name a size in preprocessor_config.json",
                slug="image-size",
            )
        pixels = torch.from_numpy(np.stack(images)).to(self.device, self.dtype)
        layout = partial(patch_marks, len(images), self.patches(images[0]), self.device)
        documents = tuple(each.id for each in prepared)
        return Batch({"pixel_values": pixels}, documents, {"": layout})

    def patches(self, pixels: Array) -> int | None:
        """Return the number of patches of an image, where the model has any."""
        size = getattr(self.config, "patch_size", None)
        if isinstance(size, int):
            return _places(pixels, size, size)
        if isinstance(size, list | tuple) and len(size) == 2:
            return _places(pixels, int(size[0]), int(size[1]))
        return None


def _places(pixels: Array, height: int, width: int) -> int:
    return max(1, pixels.shape[1] // height) * max(1, pixels.shape[2] // width)
