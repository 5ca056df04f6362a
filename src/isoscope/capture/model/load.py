"""Loading a model from a folder, a GGUF file or the hub."""

import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, Protocol

from isoscope.dataclass import dataclass
from isoscope.errors import IsoscopeError
from isoscope.types import Array

if TYPE_CHECKING:
    from torch import nn

    from isoscope.capture.model.pooling import Pooling

NEEDED = ("torch", "transformers", "accelerate")
Takes = Literal["text", "audio", "image"]


class Tokenizer(Protocol):
    """A tokenizer of transformers."""

    def __call__(self, text: str, **options: Any) -> Mapping[str, list[int]]:
        """Return `input_ids` of a text, and what else the options name."""
        ...

    def decode(self, ids: list[int], **options: Any) -> str:
        """Return the text of token ids."""
        ...

    def get_vocab(self) -> dict[str, int]:
        """Return the id of every token."""
        ...


class Processor(Protocol):
    """A feature extractor, which has the rates, or an image processor of transformers."""

    sampling_rate: int
    hop_length: int
    n_samples: int

    def __call__(self, *inputs: object, **options: object) -> Mapping[str, Array]:
        """Return the inputs of a model: `input_values`, `pixel_values` and the like."""
        ...


@dataclass(frozen=True)
class Loaded:
    """A network in evaluation mode, with what its inputs need and its fingerprints."""

    model: "nn.Module"
    name: str
    takes: Takes
    tokenizer: Tokenizer | None  # token files work without one
    processor: Processor | None  # of audio or images
    identity: dict[str, object]  # plain values
    pooling: "Pooling | None"  # of a sentence-transformers folder
    body: "nn.Module"  # runs the blocks, without logits over the vocabulary


def load(
    where: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    device: str = "cpu",
    device_map: str | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
    untrained: bool = False,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> Loaded:
    """Return a model from a folder, a GGUF file, or a name of the hub with `@revision`.

    Nothing is downloaded unless the name is not a path, and `say` is called first.
    `untrained` builds the same configuration with random weights.
    """
    need(NEEDED)
    from isoscope.capture.model.assemble import assemble, gguf_cache, locate
    from isoscope.capture.model.network import Placement, find_device, find_dtype

    placement = Placement(find_dtype(dtype), find_device(device), device_map)
    say = _ignore if say is None else say
    location = locate(
        where, revision=revision, code=trust_remote_code, weights=not untrained, say=say
    )
    random = seed if untrained else None
    if location.gguf is None:
        return assemble(location, placement, trust=trust_remote_code, seed=random, say=say)
    need(("gguf",))
    with gguf_cache():
        return assemble(location, placement, trust=trust_remote_code, seed=random, say=say)


def _ignore(_line: str) -> None:
    return None


def need(packages: tuple[str, ...]) -> None:
    """Raise, with what to install, if one of the packages for models is missing."""
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise IsoscopeError(
                f"loading a model needs the package {package}, got none ({error})",
                hint="pip install 'isoscope[hf]'",
                slug="model-packages",
            ) from error
