"""The scratch folder of a unit: made when it is used, gone when the unit is kept."""

import shutil
from collections.abc import Callable
from pathlib import Path


class Scratch:
    """A folder for one unit; a killed run finds there what the unit left."""

    def __init__(self, base: Callable[[], Path], stage: int, unit: int) -> None:
        self._base = base
        self._name = f"{stage + 1}-{unit}"
        self.used = False

    @property
    def path(self) -> Path:
        """The folder, made on first use."""
        place = self._base() / self._name
        place.mkdir(parents=True, exist_ok=True)
        self.used = True
        return place

    def clear(self) -> None:
        """Remove it, once the unit is kept."""
        shutil.rmtree(self._base() / self._name, ignore_errors=True)
