"""What is read of the token types of a model: records, their tables, and points of a chart."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import msgspec
import numpy as np

from isoscope.accumulate import (
    Accumulator,
    Kind,
    NeighbourhoodsSummary,
    accumulator_of,
)
from isoscope.accumulate import Neighbourhoods as Occurrences
from isoscope.accumulate.survey import ORDINARY, Place
from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Line,
    RecordLayout,
    Results,
    Table,
    numbers,
    texts,
)
from isoscope.errors import StoreError, TooFewRowsError
from isoscope.lab.curvature.neighbourhoods import (
    MEANS,
    OVER_TYPES,
    Neighbourhoods,
    TypeValues,
    measured_values,
)
from isoscope.lab.curvature.results import CurvatureRecord
from isoscope.site import output_of
from isoscope.store import Run
from isoscope.store.state import State
from isoscope.types import Reading

TITLES = {
    "frequency-distance-types": "r(log f, distance)",
    "frequency-tangent": "tangent ~ f^",
    "frequency-normal": "normal ~ f^",
    "tangent-normal": "normal ~ tangent^",
    "tangent-share": "tangent share",
    "tangent-variance": "tangent variance",
    "normal-variance": "normal variance",
    "centroid-distance": "distance",
}
MEANING = (
    "normal ~ tangent^: 2 where the normal part is curvature, 1 where neighbourhoods of types "
    "differ in scale only; f is the share of a type among all tokens"
)


class KnownTypes(msgspec.Struct, frozen=True):
    """The token types of a run: ids, shares of all tokens, and how they are written."""

    tokens: list[int]
    shares: list[float]
    names: list[str]
    rank: int

    def to_dict(self) -> dict[str, object]:
        """Return plain values, as a run holds them."""
        return msgspec.to_builtins(self)

    def neighbourhoods(self, summary: NeighbourhoodsSummary) -> Neighbourhoods:
        """Return the neighbourhoods of one site."""
        shares = np.zeros(1 + max(self.tokens))
        shares[self.tokens] = self.shares
        return Neighbourhoods.of(summary, shares, self.rank)


@dataclass(frozen=True)
class TypeRecord(CurvatureRecord):
    """One value of the token types of a site, of all of them or of a band of frequency."""

    what: ClassVar[str] = "types"
    site: str
    group: str  # empty: all types
    measure: str
    value: float
    low: float | None  # 95 % interval over documents
    high: float | None
    types: int
    width: int


def read_types(
    state: State, sites: Sequence[str], known: KnownTypes, run: str
) -> list[Reading]:
    """Return the readings of all sites that have types enough."""
    found: list[Reading] = []
    errors: list[TooFewRowsError] = []
    for site in sites:
        if site in state.trouble or site not in state.sites:
            continue
        try:
            seen = known.neighbourhoods(_summary(state.survey_of(site).held, site))
        except TooFewRowsError as error:
            errors.append(error)
            continue
        found += [
            Reading(
                run,
                site,
                "all",
                each.group,
                None,
                each.measure,
                each.value,
                each.low,
                each.high,
                each.types,
                seen.width,
            )
            for each in measured_values(seen)
        ]
    if not found and errors:
        raise errors[0]
    return found


def _summary(
    held: Mapping[Place, Mapping[Kind, Accumulator[object]]], site: str
) -> NeighbourhoodsSummary:
    return accumulator_of(held[site, ORDINARY], Occurrences).finalize()


def type_results(
    readings: Sequence[Reading], known: KnownTypes, trouble: Mapping[str, str]
) -> Results[CurvatureRecord]:
    """Return the records of readings."""
    found = [
        TypeRecord(
            each.site, each.group, each.measure, each.value, each.low, each.high, each.n, each.d
        )
        for each in readings
    ]
    skipped = tuple(f"{site}: NaN or infinity at {why}" for site, why in trouble.items())
    return Results(found, TYPES, shared={"rank": known.rank}, left_out=skipped)


# --- of a run folder ----------------------------------------------------------------------
def known_types(run: Run) -> KnownTypes | None:
    """Return the token types of a run; None where it is one of draws."""
    described = run.origin.settings.rest.get("neighbourhoods")
    if described is None:
        return None
    try:
        known = msgspec.convert(described, KnownTypes)
        fits = len(known.tokens) == len(known.shares) == len(known.names) > 0
        if not fits or not 0 < min(known.shares) <= max(known.shares) <= 1:
            raise ValueError("shares of types")
        if min(known.tokens) < 0 or max(known.tokens) > 1 << 24 or known.rank < 1:
            raise ValueError("ids of types")
    except (msgspec.ValidationError, ValueError) as error:
        raise StoreError(
            f"expected token types in {run.path.name!r}, got others: {error}"[:300],
            hint="do it again with --overwrite",
            slug="store-damaged",
        ) from error
    return known


@dataclass(frozen=True)
class TypePoint:
    """One token type at one site."""

    site: str
    name: str
    share: float
    tangent: float
    normal: float
    distance: float


def type_points(run: Run, known: KnownTypes) -> Iterator[TypePoint]:
    """Yield every type at every site."""
    names = dict(zip(known.tokens, known.names, strict=True))
    for site in run.sites:
        summary = _summary(run.survey_of(site).held, site)
        if not {*summary.types.tolist()} <= names.keys() or known.rank >= summary.kept // 2:
            raise StoreError(
                f"the token types of {run.path.name!r} are not those of its summaries",
                hint="do it again with --overwrite",
                slug="store-damaged",
            )
        try:
            seen = known.neighbourhoods(summary)
        except TooFewRowsError:
            continue
        values: TypeValues = seen.measure()
        columns = (seen.tokens, seen.shares, values.tangent, values.normal, values.distances)
        for token, share, tangent, normal, distance in zip(*map(list, columns), strict=True):
            yield TypePoint(
                site,
                names[int(token)],
                float(share),
                float(tangent),
                float(normal),
                float(distance),
            )


# --- as tables ----------------------------------------------------------------------------
def _tables(found: Results[CurvatureRecord]) -> tuple[Table, ...]:
    records = [each for each in found if isinstance(each, TypeRecord)]
    sites = list(dict.fromkeys(each.site for each in records))
    if not sites:
        return ()
    cells = {(each.site, each.group, each.measure): each for each in records}
    whole = tuple(
        Column(TITLES[name], tuple(_cell(cells[site, "", name]) for site in sites))
        for name in (*OVER_TYPES, "tangent-share")
    )
    types = Column("types", tuple(str(cells[site, "", OVER_TYPES[0]].types) for site in sites))
    first = Table(
        "token types of each site, with 95 % intervals over documents",
        (Column("site", tuple(sites), words=True), types, *whole),
        left_out=found.left_out,
        notes=(MEANING,),
    )
    output = output_of(sites) or sites[-1]
    groups = list(dict.fromkeys(e.group for e in records if e.site == output and e.group))
    bands = tuple(
        Column(TITLES[name], tuple(_cell(cells[output, group, name]) for group in groups))
        for name in MEANS
    )
    labels = tuple(group.removeprefix("frequency ") for group in groups)
    number = Column("types", tuple(str(cells[output, g, MEANS[0]].types) for g in groups))
    second = Table(
        f"{output} by frequency: means over types", (Column("share", labels), number, *bands)
    )
    return (first, second)


def _cell(each: TypeRecord) -> str:
    if each.low is None or each.high is None:
        return f"{each.value:.3g}"
    return f"{each.value:.3g} [{each.low:.2g}, {each.high:.2g}]"


_FIELDS = (
    *texts("what", "site", "group", "measure"),
    *numbers("value", "low", "high"),
    *(Field(name, "integer") for name in ("types", "width", "rank")),
)


def _lines(found: Results[CurvatureRecord]) -> list[Line]:
    return [found.shared | each.to_dict() for each in found]


TYPES = RecordLayout(
    name="curvature-types",
    tables=_tables,
    to_dict=CurvatureRecord.to_dict,
    fields=_FIELDS,
    lines=_lines,
)
