"""A model located and assembled: configuration, network, tokenizer, identity."""

import json
import os
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path

import torch
import transformers
from torch import nn

from isoscope.capture.model.config import class_of, read_config
from isoscope.capture.model.folder import sha_of_files, weight_files
from isoscope.capture.model.hub import download
from isoscope.capture.model.load import Loaded
from isoscope.capture.model.network import (
    Placement,
    body_of,
    build_untrained,
    read_trained,
    sha_of_weights,
    takes,
)
from isoscope.capture.model.pooling import check_dense, read_pooling
from isoscope.capture.model.tokenizer import read_processor, read_tokenizer, tokenizer_files
from isoscope.dataclass import dataclass
from isoscope.errors import IsoscopeError

# Both are pure: a view of a file that is only read, and a table of names.
PURE = ("GGUFReader", "get_tensor_name_map")


@dataclass(frozen=True, slots=True)
class Location:
    """The folder of a model on this machine."""

    name: str  # as shown
    folder: Path
    gguf: str | None = None  # the file in the folder
    commit: str | None = None  # of the hub


def locate(
    where: str | os.PathLike[str],
    *,
    revision: str | None,
    code: bool,
    weights: bool,
    say: Callable[[str], None],
) -> Location:
    """Return where a model is: an existing path, or the folder a hub name is downloaded to."""
    text = os.fspath(where)
    path = Path(text).expanduser()
    if path.exists():
        return _local(path, revision)
    if not isinstance(where, str) or looks_like_path(text):
        raise IsoscopeError(
            f"no such folder: {text}",
            hint="check the spelling; a relative path starts in the folder you are in",
            slug="model-not-found",
        )
    name, _, after = text.partition("@")
    if after and revision and after != revision:
        raise IsoscopeError(
            f"expected one revision of {name}, got {after!r} and {revision!r}",
            hint="give it once, after the name",
            slug="hub-revision",
        )
    at = after or revision
    folder, commit = download(name, at, code=code, weights=weights, say=say)
    return Location(f"{name}@{at}" if at else name, folder, commit=commit)


def looks_like_path(text: str) -> bool:
    """Whether a text is meant as a path: names of the hub have one slash at most."""
    return text.startswith((".", "/", "~")) or text.count("/") > 1 or text.endswith(".gguf")


def _local(path: Path, revision: str | None) -> Location:
    if revision:
        raise IsoscopeError(
            f"cannot take revision {revision!r} with the path {path}",
            hint="a folder has one revision; leave it out, or name the model as on the hub",
            slug="hub-revision",
        )
    if path.is_dir():
        return Location(path.resolve().name, path)
    if path.suffix.lower() == ".gguf":
        return Location(path.stem, path.parent, gguf=path.name)
    raise IsoscopeError(
        f"expected a folder or a GGUF file, got the file {path}",
        hint="name the folder that has config.json and the weights",
        slug="model-not-found",
    )


def assemble(
    location: Location,
    placement: Placement,
    *,
    trust: bool,
    seed: int | None,
    say: Callable[[str], None],
) -> Loaded:
    """Return the model of a folder; `seed` is that of random weights, None for trained ones."""
    folder, pooling = read_pooling(location.folder, say=say, weights=seed is None)
    gguf = location.gguf
    config = read_config(folder, gguf, trust=trust, say=say)
    kind = class_of(config, gguf=gguf is not None)
    if seed is None:
        paths = [folder / gguf] if gguf else weight_files(folder)
        with ThreadPoolExecutor(1) as pool:  # a large model takes a minute to hash
            hashing = pool.submit(sha_of_files, paths)
            model = read_trained(
                kind, config, paths, placement, gguf=gguf is not None, trust=trust, say=say
            )
            sha = hashing.result()
    else:
        model = build_untrained(kind, config, placement, trust=trust, seed=seed)
        sha = sha_of_weights(model)
    width = getattr(config, "hidden_size", None)
    if pooling is not None and isinstance(width, int):
        check_dense(pooling, width, location.folder)
    tokenizer = read_tokenizer(folder, gguf, trust=trust, say=say)
    read = [folder / gguf] if gguf else tokenizer_files(folder)
    sense = takes(model)
    return Loaded(
        model=model,
        name=location.name,
        takes=sense,
        tokenizer=tokenizer,
        processor=read_processor(folder, sense, trust=trust, say=say),
        identity={
            "model": location.name,
            "sha": sha,
            "revision": location.commit,
            "config": _sha_of_config(model, gguf, folder),
            "tokenizer": None if tokenizer is None or not read else sha_of_files(read),
            "dtype": str(placement.dtype).removeprefix("torch."),
            "architecture": type(model).__name__,
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "untrained": seed is not None,
            "seed": seed,
            "versions": {
                "torch": str(torch.__version__),
                "transformers": transformers.__version__,
            },
        },
        pooling=pooling,
        body=body_of(model),
    )


def _sha_of_config(model: nn.Module, gguf: str | None, folder: Path) -> str:
    config = getattr(model, "config", None)
    if gguf is None or not isinstance(config, transformers.PretrainedConfig):
        return sha_of_files([folder / "config.json"])
    settings = {**config.to_dict(), "transformers_version": None}
    return sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()


@contextmanager
def gguf_cache() -> Generator[None]:
    """Parse a GGUF file once: transformers would do it three times, some seconds each.

    Configuration, tokenizer and weights each open the file anew, and the table of names is
    built once for every module of the model: half of the time it takes to load SmolLM2.
    """
    import gguf

    before = {name: getattr(gguf, name) for name in PURE}
    for name, slow in before.items():
        setattr(gguf, name, cache(slow))
    try:
        yield
    finally:
        for name, slow in before.items():
            setattr(gguf, name, slow)
