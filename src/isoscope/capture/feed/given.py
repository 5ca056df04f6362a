"""What a feed is given: a document of any source, and a loaded model."""

from typing import Any, Protocol

from torch import nn


class Given(Protocol):
    """A document: text, token ids, samples of sound or pixels, and where they came from."""

    @property
    def id(self) -> str:
        """Its id, unique in the corpus."""
        ...

    @property
    def content(self) -> Any:
        """A string, or 1-D token ids, 1-D samples or an (H, W, 3) image."""
        ...

    @property
    def target(self) -> str | None:
        """A transcript or translation, for the decoder."""
        ...

    @property
    def rate(self) -> int:
        """Samples a second, where it is sound."""
        ...

    @property
    def place(self) -> str:
        """The file, for messages."""
        ...


class Loaded(Protocol):
    """A model and what turns documents into its inputs."""

    @property
    def model(self) -> nn.Module:
        """The model with its head."""
        ...

    @property
    def body(self) -> nn.Module:
        """The model without its head: what is called."""
        ...

    @property
    def takes(self) -> str:
        """`text`, `audio` or `image`."""
        ...

    @property
    def tokenizer(self) -> Any:
        """A tokenizer of transformers, or None."""
        ...

    @property
    def processor(self) -> Any:
        """A feature extractor or image processor of transformers, or None."""
        ...

    @property
    def pooling(self) -> Any:
        """What a sentence-transformers folder says of length and prompts, or None."""
        ...
