"""From documents to batches: what a model is called with, and which positions count."""

from isoscope.capture.feed.base import Batch, Feed, Marks, PositionLayout, Prepared
from isoscope.capture.feed.choose import feed_for, sample_inputs

__all__ = [
    "Batch",
    "Feed",
    "Marks",
    "PositionLayout",
    "Prepared",
    "feed_for",
    "sample_inputs",
]
