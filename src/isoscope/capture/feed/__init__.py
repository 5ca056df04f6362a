"""From documents to batches: what a model is called with, and which positions count."""

from isoscope.capture.feed.base import Batch, Feed, Prepared
from isoscope.capture.feed.choose import feed_for, sample_inputs
from isoscope.capture.feed.marks import Marks

__all__ = ["Batch", "Feed", "Marks", "Prepared", "feed_for", "sample_inputs"]
