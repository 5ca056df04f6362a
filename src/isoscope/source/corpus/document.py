"""One document of a corpus: what a model reads in one piece."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Document:
    """A text, a run of tokens, a sound or an image, with its name.

    Content is a string, a 1-D int64 array, a 1-D float32 array (mono) or a uint8 array
    of shape (height, width, 3), by the kind of the corpus.
    """

    id: str
    content: Any
    target: str | None = None  # transcript or target text, where the corpus has one
    rate: int = 0  # audio: samples a second, as stored in the file
    place: str = ""  # file, and line, for messages
    label: str | None = None  # of the column of labels, where one was named
