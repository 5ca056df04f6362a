"""The files of a model folder, read with care: bounded JSON, names that stay inside."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path, PurePosixPath

from isoscope.errors import IsoscopeError

LARGEST_JSON = 64 * 2**20  # an index of a very large model has a few MB
PAGE = 2**20


def read_json(path: Path) -> object:
    """Return the content of a JSON file; it is not read when it is absurdly large."""
    try:
        size = path.stat().st_size
        if size > LARGEST_JSON:
            raise unreadable(path, f"{size} bytes of JSON")
        return json.loads(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error.strerror or "no content") from error
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"broken JSON ({error})") from error


def read_object(path: Path) -> dict[str, object]:
    """Return the content of a JSON file that has to be an object."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise unreadable(path, f"JSON of kind {type(content).__name__} where an object belongs")
    return content


def inside(folder: Path, name: object, named_in: Path) -> Path:
    """Return the path of a file that another file names; it may not lead out of the folder.

    The check is of the name alone: the hub's cache is made of links to files elsewhere.
    """
    parts = PurePosixPath(name).parts if isinstance(name, str) else ("..",)
    text = str(name)
    if ".." in parts or PurePosixPath(text).is_absolute() or set("\\:\0") & set(text):
        raise IsoscopeError(
            f"expected names of files in the folder of {named_in}, got {name!r}",
            hint="the file tries to reach outside its folder; get the model from its maker",
            slug="model-unreadable",
        )
    return folder / text


def sha_of_files(paths: list[Path]) -> str:
    """Return the SHA-256 of the content of files, one after the other in order of name."""
    digest = sha256()
    for path in sorted(paths, key=lambda p: p.as_posix()):
        try:
            with path.open("rb") as file:
                while page := file.read(PAGE):
                    digest.update(page)
        except OSError as error:
            raise unreadable(path, error.strerror or "no content") from error
    return digest.hexdigest()


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its kind where it has none."""
    return str(error).strip().split("\n")[0] or type(error).__name__


@contextmanager
def no_panic() -> Generator[None]:
    """Raise a ValueError where the library of tokenizers gives up.

    What it raises then is no `Exception`, so that nobody catches it: a file of someone else
    would end the process.
    """
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ValueError(first_line(error)) from error


def unreadable(path: Path | str, got: str) -> IsoscopeError:
    """Return the error for a file of a model that cannot be read as what it should be."""
    return IsoscopeError(
        f"expected a readable part of a model at {path}, got {got}",
        hint="copy or download the model again, and look whether its files are whole",
        slug="model-unreadable",
    )


@contextmanager
def first_pass(name: str) -> Generator[None]:
    """Translate what a model raises the first time it is run: its parts do not fit together.

    Config and weights can each be sound and yet be of two models.
    """
    try:
        yield
    except (IsoscopeError, MemoryError):
        raise
    except Exception as error:  # each model has its own complaints
        if "memory" in str(error).lower():  # torch has no one error for it
            raise
        raise IsoscopeError(
            f"cannot run {name} on a short input: {type(error).__name__}: {first_line(error)}",
            hint="look whether config and weights belong together; a model of your own must "
            "accept what its tokenizer returns",
            slug="model-fails",
        ) from error


SAFE = "model.safetensors"
TORCH = "pytorch_model.bin"


def weight_files(folder: Path) -> list[Path]:
    """Return the files with the weights of a folder, each of which exists.

    Safetensors are preferred. Torch files are pickles; transformers opens them with
    `weights_only=True`, which builds tensors and nothing else.
    """
    if (folder / "adapter_config.json").exists():
        raise IsoscopeError(
            f"expected whole weights in {folder}, got an adapter of another model",
            hint="merge the adapter into its model first (peft: merge_and_unload), save that",
            slug="model-weights-missing",
        )
    for name in (SAFE, TORCH):
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            return _shards(folder, index)
    raise IsoscopeError(
        f"expected {SAFE} or {TORCH} in {folder}, got {_what_is(folder)}",
        hint="convert the weights with save_pretrained of transformers, or name a GGUF file",
        slug="model-weights-missing",
    )


def refused_pickle(path: Path) -> IsoscopeError:
    """Return the error for a torch file that would do more than hold tensors."""
    return IsoscopeError(
        f"expected plain tensors in {path}, got a pickle that does more than hold them",
        hint="such files can run code and are refused; get the model as safetensors",
        slug="model-pickle",
    )


def is_safe(paths: list[Path]) -> bool:
    """Whether these weights are safetensors."""
    return all(path.suffix == ".safetensors" for path in paths)


def _shards(folder: Path, index: Path) -> list[Path]:
    names = read_object(index).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise unreadable(index, "an index that names no weights")
    texts = {name if isinstance(name, str) else ".." for name in names.values()}
    paths = [inside(folder, name, index) for name in sorted(texts)]
    for path in paths:
        if not path.is_file():
            raise IsoscopeError(
                f"expected {path.name} in {folder}, as {index.name} says, got no such file",
                hint="copy or download the missing part",
                slug="model-weights-missing",
            )
    return paths


def _what_is(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    if not names:
        return "an empty folder"
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
