"""Readings: a list that shows itself as a table and converts to frames."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from isoscope.errors import ConfigError
from isoscope.report.formats import KEYS, as_csv, as_json, as_markdown, as_text, record
from isoscope.report.html import as_html
from isoscope.report.latex import as_latex
from isoscope.report.layers import is_wide, layers
from isoscope.report.table import Reference, Table, table
from isoscope.types import Reading

if TYPE_CHECKING:
    import pandas
    import polars


class Readings(list[Reading]):
    """A list of readings, and what belongs to all of them.

    >>> Readings([Reading("a", "rows", "all", "", None, "isoscore", 0.5, 0.4, 0.6, 9, 3)])
    run a, site rows, variant all
    <BLANKLINE>
    measure   value  95 % interval  n  d
    isoscore   0.50   [0.40, 0.60]  9  3
    """

    def __init__(
        self,
        readings: Iterable[Reading] = (),
        *,
        left_out: Iterable[str] = (),
        isotropic: Reference | None = None,
        run: Mapping[str, Any] | None = None,
        spoilt: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(readings)
        self.left_out = tuple(left_out)  # measures that could not be computed, and why
        self.isotropic = dict(isotropic or {})  # what an isotropic cloud would read
        self.run = dict(run or {})  # where the readings come from
        self.remarks: tuple[str, ...] = ()  # what should be said of the run as a whole
        self.spoilt = dict(spoilt or {})  # sites that said what is no number, and where

    @property
    def table(self) -> Table:
        """The rows and columns that every format shows."""
        return table(self, left_out=self.left_out, isotropic=self.isotropic)

    @property
    def is_wide(self) -> bool:
        """Whether there are several sites."""
        return is_wide(self)

    @property
    def overview(self) -> Table:
        """What is shown at first: of several sites a line each, else the whole table."""
        return layers(self, left_out=self.left_out) if self.is_wide else self.table

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain dictionaries, with the keys of `--json`."""
        return [record(each) for each in self]

    def to_json(self) -> str:
        """One JSON object a line."""
        return as_json(self)

    def to_csv(self) -> str:
        """Comma-separated values, all digits."""
        return as_csv(self)

    def to_latex(self) -> str:
        """A booktabs table."""
        return as_latex(self.table)

    def to_markdown(self) -> str:
        """A Markdown table."""
        return as_markdown(self.table)

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas frame, one row a reading."""
        pandas = _needed("pandas")
        frame = pandas.DataFrame(self.to_dict(), columns=list(KEYS))
        kinds = dict.fromkeys(KEYS, "str") | {"step": "Int64", "n": "int64", "d": "int64"}
        kinds |= dict.fromkeys(("value", "low", "high"), "float64") | {"warnings": "object"}
        return frame.astype(kinds)

    def to_polars(self) -> "polars.DataFrame":
        """A polars frame, one row a reading."""
        polars = _needed("polars")
        kinds = dict.fromkeys(KEYS, polars.String)
        kinds |= dict.fromkeys(("value", "low", "high"), polars.Float64)
        kinds |= dict.fromkeys(("step", "n", "d"), polars.Int64)
        kinds["warnings"] = polars.List(polars.String)
        return polars.DataFrame(self.to_dict(), schema=kinds)

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Reading: ...
    @overload
    def __getitem__(self, index: slice, /) -> "Readings": ...
    def __getitem__(self, index: Any, /) -> Any:
        chosen = super().__getitem__(index)
        return self.with_readings(chosen) if isinstance(index, slice) else chosen

    def with_readings(self, readings: Iterable[Reading]) -> "Readings":
        """Other readings of the same run, with what belongs to all of them."""
        return Readings(
            readings,
            left_out=self.left_out,
            isotropic=self.isotropic,
            run=self.run,
            spoilt=self.spoilt,
        )

    def __str__(self) -> str:
        return as_text(self.overview).removesuffix("\n")

    __repr__ = __str__  # a list of bare tuples would say the same, unreadably

    def _repr_html_(self) -> str:
        return as_html(self.overview)


def _needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"cannot make a {name} frame without {name}",
            hint=f"pip install {name}",
            slug="frame-package",
        ) from error
