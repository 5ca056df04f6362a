"""The verb of probing: how well one number of a state tells two labels apart."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoscope.display.escape import plain
from isoscope.display.frames import Field, integers, numbers, texts
from isoscope.display.number import count, format_value
from isoscope.display.results import RecordLayout, Results
from isoscope.display.table import Column, Table
from isoscope.lab.probe.spec import ProbeSpec
from isoscope.study.keywords import call, keywords
from isoscope.study.spec import EngineOptions

if TYPE_CHECKING:
    from isoscope.lab.probe.one_dimension import OneDimension

NO_BETTER = "no better than always giving the commoner label, as far as these documents tell: "
SHORT = "documents of fewer than two tokens left out: {count}"


@dataclass(frozen=True)
class Probed:
    """The one-dimension classifier of a site."""

    site: str
    at: str  # "first", "last" or "mean": the state that stands for a document
    told: "OneDimension"

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {"site": self.site, "at": self.at, **self.told.to_dict()}

    @property
    def is_better(self) -> bool:
        """Whether the interval lies above what one label always would give."""
        return self.told.low > self.told.majority


def _tables(found: Results[Probed]) -> tuple[Table, ...]:
    """One line per site."""
    told = [each.told for each in found]
    pairs = [format_value(100 * e.accuracy, 100 * e.low, 100 * e.high) for e in told]
    columns = (
        Column("site", tuple(plain(each.site) for each in found), words=True, fold=12),
        Column("token", tuple(each.at for each in found), words=True),
        Column("dimension", tuple(str(each.dimension) for each in told)),
        Column("accuracy", tuple(f"{value} %" for value, _ in pairs)),
        Column("95 % interval", tuple(ends for _, ends in pairs)),
        Column("majority", tuple(f"{100 * each.majority:.1f} %" for each in told)),
        Column("rule", tuple(_rule(each) for each in told), words=True, fold=14),
    )
    return (Table(_caption(found), columns, found.remarks),)


def _caption(found: Results[Probed]) -> str:
    named = [f"model {plain(str(found.shared['model']))}"]
    if found:
        one = found[0].told
        named += [f"chosen on {count(one.n_train)} documents"]
        named += [f"accuracy on {count(one.n_test)} others"]
    return ", ".join(named)


PROBED = RecordLayout(
    name="sites",
    tables=_tables,
    to_dict=Probed.to_dict,
    fields=(
        *texts("model", "site", "at"),
        Field("dimension", "integer"),
        Field("threshold", "number"),
        *texts("above", "below"),
        *numbers("train_accuracy", "accuracy", "low", "high", "majority"),
        *integers("n_train", "n_test", "d"),
        Field("as_published", "flag"),
    ),
)


@keywords(ProbeSpec, EngineOptions)
def probe(*arguments: Any, **options: Any) -> Results[Probed]:
    """Measure how well one dimension of a document's state distinguishes two labels.

    `label` is a column of the corpus, a .txt file with one label per line, or labels
    themselves. The dimension and threshold are chosen on one part of the documents and tried
    on the rest. `positive` sets one label against all others. By default the state is that
    after the final norm, of the first token of encoders and the last of decoders.
    """
    found = call(ProbeSpec, arguments, options, EngineOptions)
    records = [Probed(each.site, each.at, each.rule) for each in found.sites]
    short = [SHORT.format(count=each.left_out) for each in found.sites if each.left_out]
    same = [plain(each.site) for each in records if not each.is_better]
    remarks = [*found.warnings, *short, *([NO_BETTER + ", ".join(same)] if same else [])]
    return Results(
        records, PROBED, shared={"model": found.model}, remarks=dict.fromkeys(remarks)
    )


def _rule(each: "OneDimension") -> str:
    value = format_value(each.threshold, None, None)[0]
    return f"{plain(str(each.above))} if > {value}, else {plain(str(each.below))}"
