"""Models by name: downloaded from the hub into its usual cache, after a message."""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from isoscope.capture.model.folder import first_line, weight_files
from isoscope.capture.model.quiet import quiet
from isoscope.errors import IsoscopeError

PUBLIC = "https://huggingface.co"
COMMIT = re.compile(r"[0-9a-f]{40}")
SETTINGS = ["*.json", "*.txt", "*.model", "*.tiktoken"]
# By exact pattern: many repositories hold the same weights three times over.
SAFE = ["model.safetensors", "model-*-of-*.safetensors", "?_*/model.safetensors"]
TORCH = ["pytorch_model.bin", "pytorch_model-*-of-*.bin", "?_*/pytorch_model.bin"]
ELSEWHERE = ["onnx/*", "openvino/*", "original/*", "coreml/*", "checkpoint-*", "runs/*"]


def download(
    name: str,
    revision: str | None,
    *,
    code: bool,
    weights: bool,
    say: Callable[[str], None],
) -> tuple[Path, str]:
    """Return the folder of a model of the hub and its commit.

    A commit that is wholly in the cache is taken from there without using the network;
    branches and tags move, so their commit is looked up.
    """
    from huggingface_hub.utils import validate_repo_id

    endpoint = os.environ.get("HF_ENDPOINT", PUBLIC).rstrip("/")
    patterns = SETTINGS + (["*.py"] if code else [])
    options: dict[str, Any] = {
        "repo_id": name,
        "revision": revision,
        "endpoint": endpoint,
        "cache_dir": _cache(),
        "ignore_patterns": ELSEWHERE,
    }
    if revision and COMMIT.fullmatch(revision):
        cached = _find_cached(options, patterns, weights)
        if cached is not None:
            return cached, cached.name
    host = urlsplit(endpoint).netloc or endpoint
    try:
        validate_repo_id(name)  # before a download is announced
        say(f"downloading {name}{f'@{revision}' if revision else ''} from {host}")
        folder = _fetch(options, patterns + (SAFE if weights else []))
        if weights and not _has_weights(folder):
            folder = _fetch(options, patterns + SAFE + TORCH)
    except IsoscopeError:
        raise
    except Exception as error:  # sockets, HTTP, disks and names each have their own
        raise _translate(error, name, revision, host) from error
    return folder, folder.name


def _cache() -> Path | None:
    """Return where models are cached, as the environment says now and not at import."""
    if at := os.environ.get("HF_HUB_CACHE"):
        return Path(at)
    home = os.environ.get("HF_HOME")
    return Path(home) / "hub" if home else None


def snapshot_folder(name: str, revision: str) -> Path | None:
    """Return the folder of a branch, tag or commit in the cache; None where it is not there."""
    repository = _repository(name)
    commit = revision
    with suppress(OSError):
        commit = (repository / "refs" / revision).read_text().strip()
    folder = repository / "snapshots" / commit
    return folder if COMMIT.fullmatch(commit) and folder.is_dir() else None


def is_downloaded(name: str, revision: str) -> bool:
    """Whether the weights of a revision are in the cache."""
    folder = snapshot_folder(name, revision)
    return folder is not None and _has_weights(folder)


def remove_download(name: str, commit: str) -> int:
    """Remove a commit from the cache, but for files that other commits share.

    Returns how many bytes that freed.
    """
    repository = _repository(name)
    folder = repository / "snapshots" / commit
    if not COMMIT.fullmatch(commit) or not folder.is_dir():
        return 0
    mine = {each.resolve() for each in folder.rglob("*") if each.is_file()}
    others = (each for each in (repository / "snapshots").iterdir() if each != folder)
    for other in others:
        mine -= {each.resolve() for each in other.rglob("*") if each.is_file()}
    freed = 0
    for blob in mine:
        with suppress(OSError):
            size = blob.stat().st_size
            blob.unlink()
            freed += size
    shutil.rmtree(folder, ignore_errors=True)
    for ref in (repository / "refs").rglob("*"):
        with suppress(OSError):
            if ref.is_file() and ref.read_text().strip() == commit:
                ref.unlink()
    return freed


def find_revisions(name: str) -> set[str] | None:
    """Return the branches and tags of a model on the hub; None where it does not tell."""
    from huggingface_hub import HfApi

    endpoint = os.environ.get("HF_ENDPOINT", PUBLIC).rstrip("/")
    try:
        with quiet():
            found = HfApi(endpoint=endpoint).list_repo_refs(name)
    except Exception:  # without a network, or of an older hub: the download will tell
        return None
    return {each.name for each in (*found.branches, *found.tags)}


def _repository(name: str) -> Path:
    """Return where the cache has the files of a model."""
    from huggingface_hub import constants

    cache = _cache() or Path(constants.HF_HUB_CACHE)
    return cache / f"models--{name.replace('/', '--')}"


def _find_cached(options: dict[str, Any], patterns: list[str], weights: bool) -> Path | None:
    tries = [patterns + SAFE, patterns + SAFE + TORCH] if weights else [patterns]
    for allowed in tries:
        try:
            folder = _fetch({**options, "local_files_only": True}, allowed)
        except Exception:  # whatever it is, the network comes next and will tell
            return None
        if (folder / "config.json").is_file() and (not weights or _has_weights(folder)):
            return folder
    return None


def _fetch(options: dict[str, Any], allowed: list[str]) -> Path:
    from huggingface_hub import constants, snapshot_download

    # Telemetry would ask the public hub first, whatever host is set.
    before, constants.HF_HUB_DISABLE_TELEMETRY = constants.HF_HUB_DISABLE_TELEMETRY, True
    try:
        with quiet():
            return Path(snapshot_download(**options, allow_patterns=allowed))
    finally:
        constants.HF_HUB_DISABLE_TELEMETRY = before


def _has_weights(folder: Path) -> bool:
    try:
        # In older sentence-transformers repositories the network has a folder of its own.
        inner = folder / "0_Transformer"
        return bool(weight_files(inner if inner.is_dir() else folder))
    except IsoscopeError:
        return False


def _translate(error: Exception, name: str, revision: str | None, host: str) -> IsoscopeError:
    from huggingface_hub import errors as hub

    if isinstance(error, hub.HFValidationError):
        return IsoscopeError(
            f"expected a folder, a GGUF file or a name such as owner/model, got {name!r}",
            hint="give the path of a folder that exists, or a name of the hub",
            slug="model-not-found",
        )
    if isinstance(error, hub.RevisionNotFoundError):
        return IsoscopeError(
            f"{name} is on {host}, but no revision of it is called {revision!r}",
            hint="look up its branches, tags and commits there, or leave @revision out",
            slug="hub-revision",
        )
    if isinstance(error, hub.GatedRepoError):
        return IsoscopeError(
            f"cannot download {name} from {host} without permission: its owner asks for it",
            hint="accept its terms there and log in with `hf auth login`, or pass a folder",
            slug="hub-refused",
        )
    if isinstance(error, hub.RepositoryNotFoundError):
        return IsoscopeError(
            f"no model is called {name!r} on {host}, and no folder here",
            hint="check the spelling; for a private model log in with `hf auth login`; "
            "for a folder give its path, such as ./model",
            slug="model-not-found",
        )
    return IsoscopeError(
        f"looked for {name}{f'@{revision}' if revision else ''} in the local cache and on "
        f"{host}, got '{first_line(error.__cause__ or error)}'",
        hint="try again when the network is there, or download the model elsewhere and "
        "pass its folder, such as ./model",
        slug="hub-offline",
    )
