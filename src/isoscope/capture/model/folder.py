"""Which files of a folder hold the weights: safetensors, or else torch files."""

from pathlib import Path

from isoscope.capture.model.files import inside, read_object, unreadable
from isoscope.errors import IsoscopeError

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
    paths = [inside(folder, name, index) for name in sorted(set(map(_text, names.values())))]
    for path in paths:
        if not path.is_file():
            raise IsoscopeError(
                f"expected {path.name} in {folder}, as {index.name} says, got no such file",
                hint="copy or download the missing part",
                slug="model-weights-missing",
            )
    return paths


def _text(name: object) -> str:
    return name if isinstance(name, str) else ".."


def _what_is(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    if not names:
        return "an empty folder"
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
