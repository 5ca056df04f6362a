"""The state of a survey as a safetensors file: arrays, and in its header what they are."""

import json
from pathlib import Path
from typing import Any

from isoscope.types import Array

META = "survey"


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


def owned(array: Array) -> Array:
    """An array that can be added to: merging happens in place."""
    return array if array.flags.writeable else array.copy()
