"""What a run folder holds, and the number that says which edition of it this is."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import TypeAlias, cast

import msgspec
import numpy as np

SCHEMA = 1
# One line per bump; older folders are read forever, or refused with a slug.
# 1  run.json, state.safetensors, readings.parquet with all columns of a reading, config.yaml;
#    a run of a series also has series.msgpack, which other runs and older versions do without

MANIFEST = "run.json"  # written last: a folder that has it is whole
STATE = "state.safetensors"
READINGS = "readings.parquet"
CONFIG = "config.yaml"
SERIES = "series.msgpack"  # of runs that follow a series of checkpoints
FILES = (STATE, READINGS, CONFIG, MANIFEST)

# What JSON and YAML can hold.
Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"


class FileMark(msgspec.Struct, frozen=True):
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
    files: dict[str, FileMark]
    left_out: list[str]
    warnings: list[str]
    # Of what the run was measured with, and "-N" where N units are missing; runs of older
    # versions have none.
    id: str = ""


def plain_values(value: object) -> Plain:
    """Return a value as JSON and YAML know it: no NumPy, no paths, no half characters.

    File names that are not UTF-8 reach Python with half characters (lone surrogates) in
    them, which no file format can hold: they are written out instead.
    """
    built = cast(Plain, msgspec.to_builtins(value, str_keys=True, enc_hook=_plain_value))
    return _whole_characters(built)


def plain_texts(texts: Iterable[str]) -> list[str]:
    """Return texts without half characters."""
    return [_whole_text(text) for text in texts]


def _plain_value(value: object) -> object:
    if isinstance(value, np.generic):
        return cast(object, value.item())
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"cannot store a {type(value).__name__}: {value!r}")


def _whole_characters(value: Plain) -> Plain:
    if isinstance(value, str):
        return _whole_text(value)
    if isinstance(value, dict):
        return {_whole_text(key): _whole_characters(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_whole_characters(each) for each in value]
    return value


def _whole_text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
