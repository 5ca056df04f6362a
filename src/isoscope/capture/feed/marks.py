"""What the positions of a tensor at a site are: tokens, molecules, frames, patches."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from isoscope.errors import ConfigError

# Models with these settings pad their input on the right themselves, to whole windows.
WINDOWS = ("attention_window", "block_size")


@dataclass(frozen=True)
class Marks:
    """Which positions of a tensor are of a document, and which of those are special."""

    real: Tensor  # (B, length) bool; never padding
    special: Tensor  # (B, length) bool; [CLS], </s>, register tokens, a decoder's prompt …
    tokens: Tensor | None  # (B, length) token ids, where positions are tokens


# The marks of a tensor by its number of positions: models shorten, lengthen and regroup them.
PositionLayout = Callable[[int], Marks]


def pads_to_windows(config: object) -> bool:
    """Whether a model lengthens its input (longformer, bigbird)."""
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
        """Return the marks of a tensor of this length."""
        more = length - self.real.shape[1]
        if more == 0:
            return Marks(self.real, self.special, self.tokens)
        if more < 0 or not self.lengthened:
            raise unknown_positions(self.real.shape[1], length)
        return Marks(*(pad(each, (0, more)) for each in (self.real, self.special, self.tokens)))


def molecule_marks(characters: TokenLayout, rate: int, length: int) -> Marks:
    """Return the marks of characters, or of molecules of `rate` of them (canine).

    Molecule 0 is the first character, [CLS], once more; molecule j is made of characters
    (j-1)*rate to j*rate-1. The model attends to molecule j if block j of characters has a real
    one, and so they are counted: a document of t characters has ceil(t / rate) molecules, each
    made of real characters only. (The block after the last of them, cut or whole, gave way to
    [CLS].) A molecule is special if all its characters are.
    """
    padded = characters.real.shape[1]
    if length == padded:
        return characters(length)
    if length != padded // rate:
        raise unknown_positions(padded // rate, length)
    blocks = (len(characters.real), length, rate)
    real = characters.real.reshape(blocks).any(dim=2)  # (B, length)
    special = characters.special.reshape(blocks).all(dim=2)
    special = torch.cat([characters.special[:, :1], special[:, :-1]], dim=1)
    return Marks(real, special & real, None)


def frame_marks(counts: Sequence[int], total: int, device: torch.device, length: int) -> Marks:
    """Return the marks of frames of sound: those that reach past a clip's end do not count.

    `counts` are the frames of each clip, `total` those of the padded batch.
    """
    if length != total:
        raise unknown_positions(total, length)
    real = within(counts, length, device)
    return Marks(real, torch.zeros_like(real), None)


def patch_marks(images: int, patches: int | None, device: torch.device, length: int) -> Marks:
    """Return the marks of patches, or places of a map; tokens before patches are special.

    A stack with more positions than there are patches has put its own in front: [CLS],
    distillation and register tokens. Stages of convolutional and of hierarchical networks
    have as many or fewer, all of the image. `patches` is None where a model cuts none.
    """
    extra = 0 if patches is None else max(0, length - patches)
    special = within([extra] * images, length, device)
    return Marks(torch.ones_like(special), special, None)


def unknown_positions(expected: int, got: int) -> ConfigError:
    """Return the error for a tensor whose positions cannot be distinguished from padding."""
    return ConfigError(
        f"expected {expected} positions per document at a site, got {got}",
        hint="this model regroups positions in a way that is not known; exclude the site",
        slug="positions-unknown",
    )
