"""From documents to batches: what a model is called with, and which positions count."""

from isoscope.capture.feed.batch import Batch, Marks, Prepared
from isoscope.capture.feed.feed import Feed, feed_for, sample_inputs

__all__ = ["Batch", "Feed", "Marks", "Prepared", "feed_for", "sample_inputs"]
