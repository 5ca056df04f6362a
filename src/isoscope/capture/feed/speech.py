"""Sound for models that listen to the wave itself: wav2vec2, hubert and their kin."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from isoscope.capture.feed.base import Feed
from isoscope.capture.feed.batch import Batch, Prepared
from isoscope.capture.feed.given import Given, Loaded
from isoscope.capture.feed.layout import FrameLayout, within
from isoscope.capture.feed.pad import stacked
from isoscope.capture.feed.sound import extractor, samples_of

SECONDS = 30  # of a clip that are heard, as many as whisper hears


class WaveFeed(Feed):
    """Samples in, frames out; a frame counts if all its samples are of the clip.

    Models that normalise each channel over time (`feat_extract_norm` is "group") were
    trained without a mask, and padding changes all their frames: they get neither.
    """

    def __init__(self, loaded: Loaded) -> None:
        super().__init__(loaded.body)
        self.extractor = extractor(loaded)
        self.config: Any = loaded.body.config
        self.mixes_lengths = getattr(self.config, "feat_extract_norm", "layer") != "group"

    def prepare(self, document: Given) -> Prepared | None:
        """Return the clip made ready, or None if it is shorter than two frames."""
        rate = int(self.extractor.sampling_rate)
        samples = samples_of(document, rate)
        heard = samples[: SECONDS * rate]
        frames = self.frames(len(heard))
        if frames < 2:
            return None
        if not self.mixes_lengths:
            # clips of as many frames become equal; no frame reaches what is cut off here
            heard = heard[: self.samples(frames)]
        ready = self.extractor(heard, sampling_rate=rate, return_tensors="np")
        values = np.asarray(ready["input_values"][0], dtype=np.float32)
        truncated = len(samples) > SECONDS * rate
        return Prepared(document.id, {"input_values": values}, frames, frames, truncated)

    def joined(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the clips side by side, silence after the shorter ones."""
        values = stacked([each.inputs["input_values"] for each in prepared], device=self.device)
        inputs = {"input_values": values.to(self.dtype)}
        if self.mixes_lengths:
            counts = [len(each.inputs["input_values"]) for each in prepared]
            inputs["attention_mask"] = within(counts, values.shape[1], self.device).long()
        frames = tuple(each.length for each in prepared)
        layout = FrameLayout(frames, self.frames(values.shape[1]), self.device)
        return Batch(inputs, tuple(each.id for each in prepared), {"": layout})

    def frames(self, samples: int) -> int:
        """Return how many frames so many samples give."""
        for kernel, stride in self._layers():
            samples = max(0, (samples - kernel) // stride + 1)
        return samples

    def samples(self, frames: int) -> int:
        """Return how many samples so many frames reach over."""
        for kernel, stride in reversed(self._layers()):
            frames = (frames - 1) * stride + kernel
        return frames

    def _layers(self) -> list[tuple[int, int]]:
        return list(zip(self.config.conv_kernel, self.config.conv_stride, strict=True))
