"""The spec of `isoscope probe`."""

from typing import Annotated, ClassVar

from isoscope.display import Results
from isoscope.engine.plan import Plan, Unit
from isoscope.lab.probe.results import Probe
from isoscope.study.model import ModelSpec
from isoscope.study.option import Part, about
from isoscope.study.run import Runnable

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

    def size(self, _stage: int, _unit: int, /) -> int | None:
        """Return the documents that are run for a site."""
        return self.documents


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


class ProbeSpec(Runnable[Results[Probe]], frozen=True, kw_only=True):
    """Measure how well one dimension of a document's state distinguishes two labels.

    `label` is a column of the corpus, a .txt file with one label per line, or labels
    themselves. The dimension and threshold are chosen on one part of the documents and tried
    on the rest. `positive` sets one label against all others. By default the state is that
    after the final norm, of the first token of encoders and the last of decoders.
    """

    command: ClassVar[str] = "probe"
    keeps: ClassVar[str] = "records"
    plans: ClassVar[type[Plan]] = ProbePlan
    worker_at: ClassVar[str] = "isoscope.lab.probe.worker:ProbeWorker"
    torch_for: ClassVar[str] = "a probe"

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
    length: Annotated[int, about("Cut documents to N tokens.", "N", least=2)] = 512
    batch: Annotated[int, about("At most N documents per batch.", "N", least=1)] = 16
    seed: Annotated[
        int, about("Chooses the documents to try it on.", "N", least=0, most=2**63 - 1)
    ] = 0
    as_published: Annotated[
        bool, about("The dimension of largest variance, and the threshold on a fixed grid.")
    ] = False
