"""The scratch folder of a unit: made when it is used, gone when the unit is kept."""

import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path


class Scratch:
    """A folder for one unit; a killed run finds there what the unit left."""

    def __init__(self, base: Callable[[], Path], name: str) -> None:
        self._base = base
        self._name = name
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
        place = self._base() / self._name
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def scratch_of(base: Callable[[], Path], stage: int, unit: int) -> Generator[Scratch]:
    """Yield the scratch of a unit; removed unless the unit failed."""
    scratch = Scratch(base, f"{stage}-{unit}")
    yield scratch
    if scratch.used:
        scratch.clear()
