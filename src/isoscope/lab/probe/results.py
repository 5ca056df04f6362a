"""One dimension as a classifier: the records of sites, and how these look."""

from collections.abc import Sequence

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Line,
    Record,
    RecordLayout,
    Results,
    Table,
    count,
    format_value,
    integers,
    numbers,
    plain,
    texts,
)
from isoscope.lab.probe.one_dimension import OneDimension

NO_BETTER = "no better than always giving the commoner label, as far as these documents tell: "
SHORT = "documents of fewer than two tokens skipped: {count}"


@dataclass(frozen=True)
class Probe(Record):
    """The one-dimension classifier of a site."""

    site: str
    at: str  # "first", "last" or "mean": the state that stands for a document
    rule: OneDimension
    short: int = 0  # documents of fewer than two tokens, skipped

    def to_dict(self) -> Line:
        """Return the record as plain values."""
        return {"site": self.site, "at": self.at, **self.rule.to_dict()}

    @property
    def is_better(self) -> bool:
        """Whether the interval lies above what one label always would give."""
        return self.rule.low > self.rule.majority


def results_of(found: Sequence[Probe], model: str, warnings: Sequence[str]) -> Results[Probe]:
    """Return the results, with the remarks that belong to them."""
    short = [SHORT.format(count=each.short) for each in found if each.short]
    same = ", ".join(plain(each.site) for each in found if not each.is_better)
    remarks = [*warnings, *dict.fromkeys(short), *([NO_BETTER + same] if same else [])]
    return Results(found, PROBES, shared={"model": model}, remarks=remarks)


def _tables(found: Results[Probe]) -> tuple[Table, ...]:
    """One line per site."""
    rules = [each.rule for each in found]
    pairs = [format_value(100 * e.accuracy, 100 * e.low, 100 * e.high) for e in rules]
    limits = [format_value(each.threshold, None, None)[0] for each in rules]
    names = (
        f"{plain(str(each.above))} if > {limit}, else {plain(str(each.below))}"
        for each, limit in zip(rules, limits, strict=True)
    )
    columns = (
        Column("site", tuple(plain(each.site) for each in found), words=True, fold=12),
        Column("token", tuple(each.at for each in found), words=True),
        Column("dimension", tuple(str(each.dimension) for each in rules)),
        Column("accuracy", tuple(f"{value} %" for value, _ in pairs)),
        Column("95 % interval", tuple(ends for _, ends in pairs)),
        Column("majority", tuple(f"{100 * each.majority:.1f} %" for each in rules)),
        Column("rule", tuple(names), words=True, fold=14),
    )
    return (Table(_caption(found), columns, found.remarks),)


def _caption(found: Results[Probe]) -> str:
    named = [f"model {plain(str(found.shared['model']))}"]
    if found:
        one = found[0].rule
        named += [f"chosen on {count(one.n_train)} documents"]
        named += [f"accuracy on {count(one.n_test)} others"]
    return ", ".join(named)


PROBES = RecordLayout(
    name="sites",
    tables=_tables,
    to_dict=Probe.to_dict,
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
