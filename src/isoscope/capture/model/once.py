"""A GGUF file parsed once: transformers would do it three times, some seconds each."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

# Both are pure: a view of a file that is only read, and a table of names.
PURE = ("GGUFReader", "get_tensor_name_map")


@contextmanager
def parsed_once() -> Generator[None]:
    """Remember what the gguf package worked out, for as long as this lasts.

    Configuration, tokenizer and weights each open the file anew, and the table of names is
    built once for every module of the model: half of the time it takes to load SmolLM2.
    """
    import gguf

    package: Any = gguf
    kept: dict[str, Callable[..., Any]] = {name: getattr(package, name) for name in PURE}
    for name, slow in kept.items():
        setattr(package, name, cache(slow))
    try:
        yield
    finally:
        for name, slow in kept.items():
            setattr(package, name, slow)
