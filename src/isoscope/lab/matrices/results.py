"""I(W) of matrices: the records, and how these look."""

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Record,
    RecordLayout,
    Results,
    Table,
    count,
    format_value,
    integers,
    non_empty,
    numbers,
    plain,
)

TIED = "tied: the output matrix is the input matrix, measured once"
ONE_SIDED = "as published: one sign of each eigenvector, whichever the solver gives"


@dataclass(frozen=True)
class MatrixIsotropy(Record):
    """I(W) of one matrix, about the origin or about its mean."""

    site: str  # EMBED or UNEMBED, of one stack or of both
    centred: bool
    rows: int
    width: int
    value: float  # both signs of every eigenvector
    log_value: float  # where the value itself is too small for a number
    as_published: float  # one sign of each, the one the eigenvectors happen to have
    reference: float | None  # random rows of the same norms; None without against_random


def matrix_tables(
    found: Results[MatrixIsotropy], as_published: bool = False
) -> tuple[Table, ...]:
    """One line per matrix and centre."""
    values = [each.as_published if as_published else each.value for each in found]
    logs = ("" if as_published else f"{each.log_value:.3g}" for each in found)
    drawn = (
        "" if each.reference is None else format_value(each.reference, None, None)[0]
        for each in found
    )
    columns = (
        Column("site", tuple(plain(each.site) for each in found), words=True, fold=12),
        Column(
            "about",
            tuple("its mean" if each.centred else "the origin" for each in found),
            words=True,
        ),
        Column("I(W)", tuple(format_value(value, None, None)[0] for value in values)),
        Column("log I(W)", tuple(logs)),
        Column("random rows", tuple(drawn)),
        Column("rows", tuple(count(each.rows) for each in found)),
        Column("d", tuple(count(each.width) for each in found)),
    )
    caption = f"model {plain(str(found.shared['model']))}, I(W): 1 is isotropic, 0 collapsed"
    return (Table(caption, non_empty(columns), found.remarks),)


MATRICES = RecordLayout(
    name="matrices",
    tables=matrix_tables,
    to_dict=MatrixIsotropy.to_dict,
    fields=(
        Field("model"),
        Field("tied", "flag"),
        Field("site"),
        Field("centred", "flag"),
        *integers("rows", "width"),
        *numbers("value", "log_value", "as_published", "reference"),
    ),
)
