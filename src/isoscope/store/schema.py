"""What a run folder holds, and the number that says which edition of it this is."""

from pathlib import PurePath
from typing import Any

import msgspec
import numpy as np

SCHEMA = 1
# One line a bump; older folders are read forever, or refused with a slug.
# 1  run.json, state.safetensors, readings.parquet with all columns of a reading, config.yaml

MANIFEST = "run.json"  # written last: a folder that has it is whole
STATE = "state.safetensors"
READINGS = "readings.parquet"
CONFIG = "config.yaml"
FILES = (STATE, READINGS, CONFIG, MANIFEST)


class Mark(msgspec.Struct, frozen=True):
    """What a file must be to be the one that was written."""

    bytes: int
    blake2b: str


class Edition(msgspec.Struct, frozen=True):
    """The one field every edition of run.json has."""

    schema: int


class Manifest(msgspec.Struct, frozen=True):
    """The contents of run.json."""

    schema: int
    created: str
    origin: dict[str, object]  # as it stands in the file; `Run.origin` is what it says
    versions: dict[str, str]
    command: list[str]
    files: dict[str, Mark]
    left_out: list[str]
    warnings: list[str]


def plain_values(value: Any) -> Any:
    """Value as JSON and YAML know it: no NumPy, no paths, no half characters.

    File names that are not UTF-8 reach Python with half characters (lone surrogates) in
    them, which no file format can hold: they are written out instead.
    """
    built = msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_value)
    return _whole_characters(built)


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"cannot store a {type(value).__name__}: {value!r}")


def _whole_characters(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_characters(each) for each in value]
    return value
