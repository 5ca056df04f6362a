"""What a model reads: documents of text, tokens, sound or images, one at a time."""

from isoscope.source.corpus.corpus import KINDS, Corpus, Document, Dropped, Kind
from isoscope.source.corpus.open_documents import open_corpus

__all__ = ["KINDS", "Corpus", "Document", "Dropped", "Kind", "open_corpus"]
