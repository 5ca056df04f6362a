"""Results: a list of typed records that prints as tables and converts to other formats."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Generic, SupportsIndex, TypeVar, overload

from isoscope.dataclass import dataclass
from isoscope.display.formats import as_html, as_latex, as_markdown, as_text
from isoscope.display.frames import Field, Line, Value, as_csv, as_pandas, as_polars
from isoscope.display.table import Table

if TYPE_CHECKING:
    import pandas
    import polars

T = TypeVar("T")
Reference = Mapping[tuple[str, int, int], float]  # (measure, n, d) to its isotropic value
DATA = ("json", "csv")  # formats that cannot hold remarks


class Results(list[T]):
    """A list of records with remarks on all of them; the layout defines tables and columns.

    >>> from isoscope.display.readings import READINGS
    >>> from isoscope.types import Reading
    >>> one = Reading("a", "rows", "all", "", None, "isoscore", 0.5, 0.4, 0.6, 9, 3)
    >>> Results([one], READINGS)
    run a, site rows, variant all
    <BLANKLINE>
    measure   value  95 % interval  n  d
    isoscore   0.50   [0.40, 0.60]  9  3
    """

    def __init__(
        self,
        records: Iterable[T],
        layout: "RecordLayout[T]",
        *,
        remarks: Iterable[str] = (),
        left_out: Iterable[str] = (),
        shared: Mapping[str, Value] | None = None,
        trouble: Mapping[str, str] | None = None,
        isotropic: Reference | None = None,
    ) -> None:
        super().__init__(records)
        self.layout = layout
        self.remarks = tuple(remarks)  # about all records
        self.left_out = tuple(left_out)  # what could not be computed, and why
        self.shared: Line = dict(shared or {})  # the first keys of every line
        self.trouble = dict(trouble or {})  # sites with NaN or infinity, and where
        self.isotropic = dict(isotropic or {})  # the values of an isotropic cloud

    @property
    def tables(self) -> tuple[Table, ...]:
        """All records in full, one table under another."""
        return self.layout.tables(self)

    @property
    def overview(self) -> tuple[Table, ...]:
        """The tables of a terminal or a notebook: all, unless the layout has an overview."""
        return (self.layout.overview or self.layout.tables)(self)

    @property
    def summary(self) -> str:
        """The result in a sentence."""
        if self.layout.summary is not None:
            return self.layout.summary(self)
        return f"{len(self)} {self.layout.name}"

    @property
    def ok(self) -> bool:
        """Whether no record failed and no site has NaN or infinity."""
        failed = self.layout.failed
        return not self.trouble and not (failed and any(map(failed, self)))

    def notes(self, style: str = "") -> tuple[str, ...]:
        """Return what to print beside a format that does not contain it."""
        if self.layout.notes is not None:
            return self.layout.notes(self, style)
        if style not in DATA:
            return ()
        remarks = (f"note: {text}" for text in self.remarks)
        return (*remarks, *(f"skipped: {text}" for text in self.left_out))

    def to_dict(self) -> list[Line]:
        """Plain dictionaries, with the keys of `--json`."""
        return [self.shared | self.layout.to_dict(each) for each in self]

    def to_json(self) -> str:
        """One JSON object per line, ASCII only, never NaN."""
        return "".join(json.dumps(each, allow_nan=False) + "\n" for each in self.to_dict())

    def to_csv(self) -> str:
        """Comma-separated values, all digits."""
        return as_csv(self.layout.fields, self._lines())

    def to_latex(self) -> str:
        """Tables in the style of booktabs."""
        return "\n".join(as_latex(each) for each in self.tables)

    def to_markdown(self) -> str:
        """Markdown tables."""
        heading = self.layout.heading(self) if self.layout.heading is not None else ""
        return heading + "\n".join(as_markdown(each) for each in self.tables)

    def to_pandas(self) -> "pandas.DataFrame":
        """A pandas frame with the columns of `--csv`, typed even where there are no records.

        Lists of numbers or texts stay lists; every other nested value is JSON text.
        """
        return as_pandas(self.layout.typed or self.layout.fields, self._frame_lines())

    def to_polars(self) -> "polars.DataFrame":
        """A polars frame with the columns of `--csv`, typed even where there are no records.

        Lists of numbers or texts stay lists; every other nested value is JSON text.
        """
        return as_polars(self.layout.typed or self.layout.fields, self._frame_lines())

    def with_records(self, records: Iterable[T]) -> "Results[T]":
        """Return other records of the same kind, with the same remarks."""
        return Results(
            records,
            self.layout,
            remarks=self.remarks,
            left_out=self.left_out,
            shared=self.shared,
            trouble=self.trouble,
            isotropic=self.isotropic,
        )

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> T: ...
    @overload
    def __getitem__(self, index: slice, /) -> "Results[T]": ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> "T | Results[T]":
        if isinstance(index, slice):
            return self.with_records(super().__getitem__(index))
        return super().__getitem__(index)

    def __str__(self) -> str:
        return "\n".join(as_text(each) for each in self.overview).removesuffix("\n")

    __repr__ = __str__  # readable, unlike a list of bare tuples

    def _repr_html_(self) -> str:
        return "".join(as_html(each) for each in self.overview)

    def _lines(self) -> list[Line]:
        return self.to_dict() if self.layout.lines is None else self.layout.lines(self)

    def _frame_lines(self) -> list[Line]:
        lines = self._lines()
        convert = self.layout.frame_line
        return lines if convert is None else [convert(line) for line in lines]


@dataclass(frozen=True)
class RecordLayout(Generic[T]):
    """How one kind of record is displayed: its tables, and the columns of its data.

    Functions are those of a module or partials of them, so that results can be pickled.
    """

    name: str  # the plural: readings, causes
    tables: Callable[[Results[T]], tuple[Table, ...]]
    to_dict: Callable[[T], Line]  # without the keys that all records share
    fields: Sequence[Field]  # of the lines of CSV
    lines: Callable[[Results[T]], list[Line]] | None = None  # flat, where to_dict is nested
    typed: Sequence[Field] | None = None  # fields of frames, where they differ from CSV
    frame_line: Callable[[Line], Line] | None = None  # converts a line of CSV
    overview: Callable[[Results[T]], tuple[Table, ...]] | None = None
    summary: Callable[[Results[T]], str] | None = None
    heading: Callable[[Results[T]], str] | None = None  # above the tables in Markdown
    notes: Callable[[Results[T], str], tuple[str, ...]] | None = None
    failed: Callable[[T], bool] | None = None
