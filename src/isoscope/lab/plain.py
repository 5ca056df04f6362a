"""Results as plain values: what JSON, tables and pages take."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

import numpy as np


class Plain:
    """A record that turns into a dictionary of numbers, strings, lists and dictionaries."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values; arrays become lists."""
        return _fields(self)


def as_plain(value: Any) -> Any:
    """Return any value of a record as plain values, and what is not finite as None."""
    if isinstance(value, Plain):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(name): as_plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return as_plain(value.tolist())
    if isinstance(value, tuple | list):
        return [as_plain(each) for each in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


def _fields(record: object) -> dict[str, Any]:
    """Return the fields of a dataclass as plain values, but for those that are not shown."""
    return {
        each.name: as_plain(getattr(record, each.name))
        for each in fields(cast(Any, record))
        if each.metadata.get("told", True)
    }
