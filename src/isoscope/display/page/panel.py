"""What a section gives to the page: text, switches, charts; and what a section is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from isoscope.display.page.exhibit import Exhibit

Columns = dict[str, list[Any]]  # names to cells; all of the same length


@dataclass(frozen=True)
class Switch:
    """A choice that keeps the rows of charts whose column of this name has this value."""

    name: str
    label: str
    choices: tuple[tuple[str, str], ...]  # value, and what the reader sees
    chosen: str


@dataclass(frozen=True)
class Chart:
    """A Vega-Lite specification over a data set called `rows`, and its rows as columns."""

    name: str
    title: str
    spec: dict[str, Any]
    columns: Columns
    alt: str  # what it shows, for those who do not see it
    wide: bool = False  # takes the whole width of the page
    half: bool = False  # or half of it; a third where neither is said
    folded: bool = False  # shown when all charts are asked for

    def rows(self, **chosen: str) -> list[dict[str, Any]]:
        """Return the rows that switches in these positions leave."""
        names = list(self.columns)
        rows = [
            dict(zip(names, row, strict=True))
            for row in zip(*self.columns.values(), strict=True)
        ]
        obeyed = {name: value for name, value in chosen.items() if name in self.columns}
        return [r for r in rows if all(r[name] == value for name, value in obeyed.items())]


@dataclass(frozen=True)
class Panel:
    """What one section shows."""

    lead: tuple[str, ...] = ()  # paragraphs of plain text
    switches: tuple[Switch, ...] = ()
    charts: tuple[Chart, ...] = ()
    body: str = ""  # HTML, all text in it escaped
    chosen: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        positions = {switch.name: switch.chosen for switch in self.switches}
        object.__setattr__(self, "chosen", positions)


Show = Callable[[Sequence[Exhibit]], Panel | None]


@dataclass(frozen=True)
class Section:
    """One part of the page: exhibits in, a panel out, or None where there is nothing of it."""

    name: str
    title: str
    show: Show
    first: bool = False  # before what pages show of every run
