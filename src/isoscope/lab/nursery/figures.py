"""Generated images of eight kinds of figures, with labels: what a vision model learns from."""

from hashlib import blake2b
from math import log

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.types import Array

HELD_OUT_SEED = 101
SIDE, PATCH = 32, 8
KINDS = ("disc", "ring", "square", "frame", "cross", "rows", "columns", "checks")
IMAGES, HELD_OUT_IMAGES = 2048, 256


@dataclass(frozen=True)
class Images:
    """Generated images of eight kinds of figures, and their labels."""

    train: Array  # (images, side, side, 3) uint8
    train_labels: Array
    held_out: Array
    held_out_labels: Array
    name: str = "generated images"

    @property
    def lengths(self) -> Array:
        """The patches of each training image."""
        return np.full(len(self.train), (SIDE // PATCH) ** 2)

    @property
    def held_out_places(self) -> range:
        """The held-out images."""
        return range(len(self.held_out))

    @property
    def unigram_entropy(self) -> float:
        """The entropy of a label: all kinds are equally frequent."""
        return log(len(KINDS))

    floor: None = None

    def digest(self) -> str:
        """Return a fingerprint of the images."""
        parts = (self.train, self.train_labels, self.held_out, self.held_out_labels)
        joined = b"\0".join(np.ascontiguousarray(each).tobytes() for each in parts)
        return blake2b(joined, digest_size=16).hexdigest()


def make_images(seed: int) -> Images:
    """Return images; the held-out ones are the same for every seed."""
    train, labels = draw_figures(IMAGES, (seed, 1))
    held_out, right = draw_figures(HELD_OUT_IMAGES, (HELD_OUT_SEED, 1))
    return Images(train, labels, held_out, right)


def draw_figures(count: int, seed: tuple[int, ...]) -> tuple[Array, Array]:
    """Return images, (count, side, side, 3) uint8, and which figure each shows.

    Place, size, both colours and some noise are drawn by chance.
    """
    rng = np.random.default_rng([*seed])
    labels = rng.permutation(np.arange(count) % len(KINDS))
    middle = rng.uniform(10, SIDE - 10, size=(2, count, 1, 1))
    radius = rng.uniform(6, 10, size=(count, 1, 1))
    y, x = np.mgrid[:SIDE, :SIDE][:, None]  # (1, side, side) each
    down, right = y - middle[0], x - middle[1]
    far, across = np.hypot(down, right), np.maximum(abs(down), abs(right))
    inside = across < radius
    thin = radius / 3
    shapes = np.stack(
        [
            far < radius,
            (far < radius) & (far > radius - thin),
            inside,
            inside & (across > radius - thin),
            inside & ((abs(down) < thin) | (abs(right) < thin)),
            inside & (y % 4 < 2),
            inside & (x % 4 < 2),
            inside & ((x // 3 + y // 3) % 2 == 0),
        ]
    )  # (kinds, count, side, side)
    shown = shapes[labels, np.arange(count)][..., None]
    # Light on dark: with contrasts of either sign a small model learns nothing for long.
    back = rng.uniform(0, 100, size=(count, 1, 1, 3))
    fore = back + rng.uniform(80, 150, size=(count, 1, 1, 3))
    noise = rng.normal(0, 12, size=(count, SIDE, SIDE, 3))
    pixels = np.where(shown, fore, back) + noise
    return np.clip(pixels, 0, 255).astype(np.uint8), labels
