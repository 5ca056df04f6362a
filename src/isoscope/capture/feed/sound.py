"""Samples of sound at the rate that a model was trained with."""

from typing import Any

import numpy as np

from isoscope.capture.feed.base import missing_processor, wrong_kind
from isoscope.capture.feed.given import Given, Loaded
from isoscope.errors import ConfigError, SourceError
from isoscope.types import Array


def extractor(loaded: Loaded) -> Any:
    """Return the feature extractor of a model, out of its processor if it is in one."""
    found = getattr(loaded.processor, "feature_extractor", loaded.processor)
    if found is None:
        raise missing_processor("audio")
    return found


def samples_of(document: Given, rate: int) -> Array:
    """Return the samples of a document as float32 at this rate."""
    content: Any = document.content
    kind = getattr(getattr(content, "dtype", None), "kind", "")
    if kind != "f" or content.ndim != 1:
        raise wrong_kind(document, "audio")
    if document.rate <= 0:
        raise SourceError(
            f"expected a sampling rate above 0, got {document.rate} in {document.id!r}",
            hint="write the file again with its sampling rate",
            slug="audio-rate",
        )
    samples = np.ascontiguousarray(content, dtype=np.float32)
    return samples if document.rate == rate else _resampled(samples, document.rate, rate)


def _resampled(samples: Array, given: int, wanted: int) -> Array:
    try:
        import soxr
    except ImportError:
        raise ConfigError(
            f"cannot bring audio from {given} to {wanted} samples a second without soxr",
            hint="pip install 'isoscope[audio]'",
            slug="package-missing",
        ) from None
    return np.asarray(soxr.resample(samples, given, wanted), dtype=np.float32)
