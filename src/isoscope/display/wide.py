"""Readings side by side: one record per site, with a column for every measure."""

from collections.abc import Sequence
from functools import partial

from isoscope.dataclass import dataclass
from isoscope.display.frames import Field, Line, integers, texts
from isoscope.display.readings import layer_table, place_of, shown_places
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Table
from isoscope.types import Reading


@dataclass(frozen=True)
class SiteReadings:
    """All measures of one site, in one variant of its rows."""

    readings: tuple[Reading, ...]

    def to_dict(self, names: Sequence[str]) -> Line:
        """Return a line with three columns per measure: its value and the ends."""
        first = self.readings[0]
        line: Line = {
            "run": first.run,
            "site": first.site,
            "variant": first.variant,
            "group": first.group,
            "step": first.step,
            "n": first.n,
            "d": first.d,
        }
        known = {each.measure: each for each in self.readings}
        for name in names:
            each = known.get(name)
            line[name] = None if each is None else each.value
            line[f"{name} low"] = None if each is None else each.low
            line[f"{name} high"] = None if each is None else each.high
        return line


def side_by_side(readings: Results[Reading]) -> Results[SiteReadings]:
    """Return one record per site; variants that have the rows of `all` are dropped.

    Tables have the usual measures where there are more than six, data has all of them.
    """
    whole = [each for each in readings if not each.group] or list(readings)
    places = shown_places(whole)
    names = tuple(dict.fromkeys(each.measure for each in whole))
    return Results(
        [SiteReadings(tuple(each for each in whole if at == place_of(each))) for at in places],
        RecordLayout(
            name="sites",
            tables=_tables,
            to_dict=partial(SiteReadings.to_dict, names=names),
            fields=(
                *texts("run", "site", "variant", "group"),
                Field("step", "integer", optional=True),
                *integers("n", "d"),
                *(
                    Field(f"{name}{end}", "number")
                    for name in names
                    for end in ("", " low", " high")
                ),
            ),
        ),
        remarks=readings.remarks,
        left_out=readings.left_out,
        trouble=readings.trouble,
    )


def _tables(records: Results[SiteReadings]) -> tuple[Table, ...]:
    flat = [reading for each in records for reading in each.readings]
    return (layer_table(flat, left_out=records.left_out),)
