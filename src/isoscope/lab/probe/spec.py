"""The spec of `isoscope probe`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from isoscope.engine import Notify
from isoscope.study.model import ModelSpec
from isoscope.study.option import Part, about
from isoscope.study.plan import Plan, Unit
from isoscope.study.run import Live, Planner, Runnable

if TYPE_CHECKING:
    from isoscope.lab.probe.one_dimension import OneDimension

LABELLED = (
    "jsonl, parquet or csv with a column of labels; anything else that survey takes, with "
    "labels apart."
)


class AtSite(Unit, frozen=True, tag=True):
    """All documents at one site; None is the model's own last one."""

    site: str | None


class ProbePlan(Plan, frozen=True, kw_only=True):
    """The sites that are probed."""

    stages: tuple[tuple[AtSite, ...], ...]
    documents: int
    model: str
    warnings: tuple[str, ...]

    def size(self, stage: int, unit: int) -> int | None:
        """Return the documents that are run for a site."""
        _ = stage, unit
        return self.documents


@dataclass(frozen=True)
class ProbedSite:
    """The best single dimension of a site."""

    site: str
    at: str
    left_out: int
    rule: "OneDimension"


@dataclass(frozen=True)
class Probing:
    """What was found at all sites."""

    model: str
    warnings: tuple[str, ...]
    sites: list[ProbedSite]


class LabelledSpec(Part, frozen=True, kw_only=True):
    """Documents with labels."""

    corpus: Annotated[
        str | None, about(LABELLED, "CORPUS", argument=True, path=True, live=True)
    ]
    label: Annotated[
        str | None,
        about(
            "The column of labels, or a .txt file with one label per line.",
            "C",
            live=True,
            positional=True,
        ),
    ]
    column: Annotated[str | None, about("The column of texts.", "C", local=True)] = None
    id: Annotated[str | None, about("The column of document ids.", "C", local=True)] = None
    skip_bad: Annotated[
        bool, about("Drop and count documents that cannot be read.", local=True)
    ] = False


class ProbeSpec(Runnable[Probing], frozen=True, kw_only=True):
    """How well one dimension of a document's state distinguishes two labels."""

    command: ClassVar[str] = "probe"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = ProbePlan

    load: ModelSpec
    read: LabelledSpec
    sites: Annotated[
        tuple[str, ...] | None,
        about("A site; may be repeated", "SITE", flag="-s/--site", default="norm.out"),
    ] = None
    at: Annotated[
        str | None,
        about(
            "The token that stands for a document: first or last, or mean of all",
            "WHERE",
            default="first of encoders, last of decoders",
        ),
    ] = None
    positive: Annotated[str | None, about("This label against all others.", "LABEL")] = None
    test: Annotated[float, about("Share of documents kept to try the rule on.", "SHARE")] = 0.5
    length: Annotated[int, about("Tokens a document is cut to.", "N", least=2)] = 512
    batch: Annotated[int, about("Documents at once.", "N", least=1)] = 16
    seed: Annotated[
        int, about("Chooses the documents to try it on.", "N", least=0, most=2**63 - 1)
    ] = 0
    as_published: Annotated[
        bool, about("The dimension of largest variance, and the threshold on a fixed grid.")
    ] = False

    def open(self, notify: Notify, live: Live | None = None) -> Planner[Probing]:
        """Read the labels, then load the model."""
        from isoscope.study.model import need_torch

        need_torch("a probe")
        from isoscope.lab.probe.worker import ProbeWorker

        return ProbeWorker(self, notify, live or {})
