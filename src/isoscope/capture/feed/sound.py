"""Feeds of sound for models that read the waveform: wav2vec2, hubert and their kin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from isoscope.capture.feed.base import (
    Batch,
    DocumentLike,
    Feed,
    Prepared,
    config_of,
    missing_processor,
    pad_rows,
    wrong_kind,
)
from isoscope.capture.feed.marks import FrameLayout, within
from isoscope.errors import ConfigError, SourceError
from isoscope.types import Array

if TYPE_CHECKING:
    from isoscope.capture.model.load import Loaded
    from isoscope.capture.model.tokenizer import Processor


def extractor(loaded: "Loaded") -> "Processor":
    """Return the feature extractor of a model, out of its processor if it is in one."""
    found = getattr(loaded.processor, "feature_extractor", loaded.processor)
    if found is None:
        raise missing_processor("audio")
    return found


def samples_of(document: DocumentLike, rate: int) -> Array:
    """Return the samples of a document as float32 at this rate."""
    content = document.content
    if not (
        isinstance(content, np.ndarray) and content.dtype.kind == "f" and content.ndim == 1
    ):
        raise wrong_kind(document, "audio")
    if document.rate <= 0:
        raise SourceError(
            f"expected a sampling rate above 0, got {document.rate} in {document.id!r}",
            hint="write the file again with its sampling rate",
            slug="audio-rate",
        )
    samples = np.ascontiguousarray(content, dtype=np.float32)
    return samples if document.rate == rate else _resample(samples, document.rate, rate)


def _resample(samples: Array, rate: int, new_rate: int) -> Array:
    try:
        import soxr
    except ImportError:
        raise ConfigError(
            f"cannot bring audio from {rate} to {new_rate} samples per second without soxr",
            hint="pip install 'isoscope[audio]'",
            slug="package-missing",
        ) from None
    return np.asarray(soxr.resample(samples, rate, new_rate), dtype=np.float32)


SECONDS = 30  # of a clip that are used, as many as whisper takes


class WaveFeed(Feed):
    """Samples in, frames out; a frame counts if all its samples are of the clip.

    Models that normalise each channel over time (`feat_extract_norm` is "group") were
    trained without a mask, and padding changes all their frames: they get neither.
    """

    def __init__(self, loaded: "Loaded") -> None:
        super().__init__(loaded.body)
        self.extractor = extractor(loaded)
        self.config = config_of(loaded.body)
        self.mixes_lengths = getattr(self.config, "feat_extract_norm", "layer") != "group"

    def prepare(self, document: DocumentLike) -> Prepared | None:
        """Return the clip made ready, or None if it is shorter than two frames."""
        rate = int(self.extractor.sampling_rate)
        samples = samples_of(document, rate)
        clip = samples[: SECONDS * rate]
        frames = self.frames(len(clip))
        if frames < 2:
            return None
        if not self.mixes_lengths:
            # clips of as many frames become equal; no frame reaches what is cut off here
            clip = clip[: self.samples(frames)]
        ready = self.extractor(clip, sampling_rate=rate, return_tensors="np")
        values = np.asarray(ready["input_values"][0], dtype=np.float32)
        truncated = len(samples) > SECONDS * rate
        return Prepared(document.id, {"input_values": values}, frames, frames, truncated)

    def collate(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the clips side by side, silence after the shorter ones."""
        values = pad_rows(
            [each.inputs["input_values"] for each in prepared], device=self.device
        )
        inputs = {"input_values": values.to(self.dtype)}
        if self.mixes_lengths:
            counts = [len(each.inputs["input_values"]) for each in prepared]
            inputs["attention_mask"] = within(counts, values.shape[1], self.device).long()
        frames = tuple(each.length for each in prepared)
        layout = FrameLayout(frames, self.frames(values.shape[1]), self.device)
        return Batch(inputs, tuple(each.id for each in prepared), {"": layout})

    def frames(self, samples: int) -> int:
        """Return the number of frames of this many samples."""
        for kernel, stride in self._layers():
            samples = max(0, (samples - kernel) // stride + 1)
        return samples

    def samples(self, frames: int) -> int:
        """Return the number of samples that frames span."""
        for kernel, stride in reversed(self._layers()):
            frames = (frames - 1) * stride + kernel
        return frames

    def _layers(self) -> list[tuple[int, int]]:
        return list(zip(self.config.conv_kernel, self.config.conv_stride, strict=True))
