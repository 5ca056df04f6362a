"""What a model reads: documents of text, tokens, sound or images, one at a time."""

from isoscope.source.corpus.audio import resampled
from isoscope.source.corpus.corpus import KINDS, Corpus, Kind
from isoscope.source.corpus.document import Document
from isoscope.source.corpus.open import open_corpus

__all__ = ["KINDS", "Corpus", "Document", "Kind", "open_corpus", "resampled"]
