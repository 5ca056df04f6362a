"""A document made ready, a batch of them, and the marks that say which positions count."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from isoscope.types import Array


@dataclass(frozen=True)
class Marks:
    """Which positions of a heard tensor are of a document, and which of those are special."""

    real: Tensor  # (B, length) bool; never padding
    special: Tensor  # (B, length) bool; [CLS], </s>, register tokens, a decoder's prompt …
    tokens: Tensor | None  # (B, length) token ids, where positions are tokens


# Marks for a tensor of so many positions: models shorten, lengthen and regroup theirs.
Layout = Callable[[int], Marks]


@dataclass(frozen=True)
class Prepared:
    """One document, ready to be batched."""

    id: str
    inputs: dict[str, Array]  # unpadded, without the batch axis
    length: int  # positions that count in the main stack; batches are sorted by it
    cost: int  # padded positions it will occupy
    truncated: bool
    special: dict[str, Array] = field(default_factory=dict[str, Array])  # by stack


@dataclass(frozen=True)
class Batch:
    """Documents side by side, as the model takes them."""

    inputs: dict[str, Tensor]
    documents: tuple[str, ...]
    layouts: Mapping[str, Layout]  # by stack

    def marks(self, stack: str, length: int) -> Marks:
        """Return the marks of a tensor of a stack: "", "enc" or "dec"."""
        if stack not in self.layouts:
            known = ", ".join(repr(each) for each in self.layouts)
            raise ValueError(f"no stack is called {stack!r}; this batch feeds {known}")
        return self.layouts[stack](length)
