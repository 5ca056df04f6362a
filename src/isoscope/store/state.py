"""The state of a survey as a safetensors file: arrays, and in its header what they are."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from isoscope.store.schema import plain_values
from isoscope.types import Array

META = "survey"


def write_state(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write what `Survey.to_state` returned."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    # The library writes memory as it lies, so it must lie in order.
    whole = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header = {META: json.dumps(plain_values(meta), allow_nan=False)}
    try:
        save_file(whole, path, metadata=header)
    except SafetensorError as error:  # how it reports a full disk
        raise _as_os_error(error) from error


def state_file(path: Path) -> Any:
    """Open a state file, of which arrays are read when they are asked for."""
    from safetensors import safe_open

    return safe_open(path, framework="numpy")


def read_state(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read what `Survey.from_state` takes; raises ValueError where the file is not one."""
    from safetensors import SafetensorError

    try:
        with state_file(path) as file:
            meta = json.loads((file.metadata() or {})[META])
            arrays = {name: owned(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not isinstance(meta, dict):
        raise ValueError(f"expected a survey's description, got {type(meta).__name__}")
    return meta, arrays


def _as_os_error(error: Exception) -> OSError:
    number = re.search(r"os error (\d+)", str(error))
    if number is None:
        return OSError(str(error))
    return OSError(int(number[1]), os.strerror(int(number[1])))


def owned(array: Array) -> Array:
    """An array that can be added to: merging happens in place."""
    return array if array.flags.writeable else array.copy()
