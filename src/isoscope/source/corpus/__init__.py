"""What a model reads: documents of text, tokens, sound or images, one at a time."""

from isoscope.source.corpus.corpus import Corpus, Document, Dropped
from isoscope.source.corpus.open_documents import open_corpus
from isoscope.source.request import KINDS, Kind

__all__ = ["KINDS", "Corpus", "Document", "Dropped", "Kind", "open_corpus"]
