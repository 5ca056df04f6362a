"""What the positions of a heard tensor are: tokens, molecules, frames, patches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from isoscope.capture.feed.batch import Marks
from isoscope.errors import ConfigError

# Models with these settings pad their input on the right themselves, to whole windows.
WINDOWS = ("attention_window", "block_size")


def windowed(config: Any) -> bool:
    """Whether a model lengthens what it is given (longformer, bigbird)."""
    return any(getattr(config, name, None) for name in WINDOWS)


def within(counts: Sequence[int], length: int, device: torch.device) -> Tensor:
    """Return the (B, length) mask of the first positions of each row."""
    ends = torch.tensor(list(counts), device=device)
    return torch.arange(length, device=device)[None, :] < ends[:, None]


@dataclass(frozen=True)
class TokenLayout:
    """A position is a token."""

    real: Tensor
    special: Tensor
    tokens: Tensor
    lengthened: bool = False  # by the model itself, with padding on the right

    def __call__(self, length: int) -> Marks:
        """Return the marks of so many positions."""
        more = length - self.real.shape[1]
        if more == 0:
            return Marks(self.real, self.special, self.tokens)
        if more < 0 or not self.lengthened:
            raise unknown_positions(self.real.shape[1], length)
        return Marks(*(pad(each, (0, more)) for each in (self.real, self.special, self.tokens)))


@dataclass(frozen=True)
class MoleculeLayout:
    """A position is a character, or a molecule of `rate` of them (canine).

    Molecule 0 is the first character, [CLS], once more; molecule j is made of characters
    (j-1)*rate to j*rate-1. The model attends to molecule j if block j of characters has a real
    one, and so do we count: a document of t characters has ceil(t / rate) molecules, each made
    of real characters only. (The block after the last of them, cut or whole, gave way to
    [CLS].) A molecule is special if all its characters are.
    """

    characters: TokenLayout
    rate: int

    def __call__(self, length: int) -> Marks:
        """Return the marks of so many characters or molecules."""
        padded = self.characters.real.shape[1]
        if length == padded:
            return self.characters(length)
        if length != padded // self.rate:
            raise unknown_positions(padded // self.rate, length)
        blocks = (len(self.characters.real), length, self.rate)
        real = self.characters.real.reshape(blocks).any(dim=2)
        special = self.characters.special.reshape(blocks).all(dim=2)
        special = torch.cat([self.characters.special[:, :1], special[:, :-1]], dim=1)
        return Marks(real, special & real, None)


@dataclass(frozen=True)
class FrameLayout:
    """A position is a frame of sound; frames that reach past the end of a clip do not count."""

    counts: tuple[int, ...]
    total: int  # of the padded batch
    device: torch.device

    def __call__(self, length: int) -> Marks:
        """Return the marks of so many frames."""
        if length != self.total:
            raise unknown_positions(self.total, length)
        real = within(self.counts, length, self.device)
        return Marks(real, torch.zeros_like(real), None)


@dataclass(frozen=True)
class PatchLayout:
    """A position is a patch or a place of a feature map; tokens before the patches are special.

    A stack that hears more positions than there are patches has put its own in front: [CLS],
    distillation and register tokens. Stages of convolutional and of hierarchical networks
    hear as many or fewer, all of the image.
    """

    images: int
    patches: int | None  # None: the model does not cut patches
    device: torch.device

    def __call__(self, length: int) -> Marks:
        """Return the marks of so many positions."""
        extra = 0 if self.patches is None else max(0, length - self.patches)
        special = within([extra] * self.images, length, self.device)
        return Marks(torch.ones_like(special), special, None)


def unknown_positions(expected: int, got: int) -> ConfigError:
    """Return the error for a tensor whose positions cannot be told apart from padding."""
    return ConfigError(
        f"expected {expected} positions a document at a site, got {got}",
        hint="this model regroups positions in a way that is not known; leave the site out",
        slug="positions-unknown",
    )
