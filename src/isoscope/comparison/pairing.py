"""Whether two runs read the same documents, and in what else they differ."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.site import is_matrix

if TYPE_CHECKING:
    from isoscope.store import Run

SHARED = 0.5  # of the sampled documents, from which on two collections are of the same texts
_NOT_TOLD = {"measures", "sites", "documents", "skip_bad"}  # the readings show these


@dataclass(frozen=True)
class Pairing:
    """Whether differences are taken document group by document group, and why."""

    documents: bool
    matrices: bool
    why: str

    def at(self, site: str) -> bool:
        """Whether a site's readings are paired."""
        # rows of a matrix are tokens, whatever the corpus
        return self.matrices if is_matrix(site) else self.documents


def pairing(first: "Run", second: "Run") -> Pairing:
    """Return how the readings of two runs hang together.

    Pairing needs documents that fall into the same groups in both: the same corpus, or the
    same ids of documents, dealt with the same seed.
    """
    seeds = first.origin.seed, second.origin.seed
    if seeds[0] != seeds[1]:
        why = f"the seeds differ ({seeds[0]} and {seeds[1]}), so that other documents were "
        return Pairing(False, False, f"independent: {why}drawn or grouped together")
    if _prints(first) == _prints(second):
        return Pairing(True, True, f"paired by document group: {_same_corpus(first, second)}")
    if first.origin.kind == second.origin.kind == "vectors":
        share = _shared_documents(first, second)
        if share >= SHARED:
            why = f"{share:.0%} of the sampled documents or rows of a have their like in b"
            return Pairing(True, True, f"paired by document group: {why}")
        why = "a and b have other documents; rows are told apart by --document or by --name"
        return Pairing(False, False, f"independent: {why}")
    names = [" + ".join(s.name for s in run.origin.sources) for run in (first, second)]
    return Pairing(False, True, f"independent: the corpora differ ({' and '.join(names)})")


def differences(first: "Run", second: "Run") -> list[str]:
    """Return in what two runs differ besides their readings, one `name x and y` each."""
    ours, theirs = _told(first), _told(second)
    found: list[str] = []
    for name in dict.fromkeys((*ours, *theirs)):
        a, b = (_short(side.get(name)) for side in (ours, theirs))
        if a != b:
            found.append(f"{name} {a} and {b}")
    return found


def _prints(run: "Run") -> list[str]:
    return sorted(source.fingerprint for source in run.origin.sources)


def _same_corpus(first: "Run", second: "Run") -> str:
    name = " + ".join(source.name for source in first.origin.sources)
    counts = [
        sum(source.documents or 0 for source in run.origin.sources) for run in (first, second)
    ]
    if counts[0] == counts[1]:
        of = f"{counts[0]} documents of " if counts[0] else ""
        return f"both read the same {of}{name}"
    return f"both read {name}, {counts[0]} documents of it in a and {counts[1]} in b"


def _shared_documents(first: "Run", second: "Run") -> float:
    """Return the share of the sampled documents of either that the other sampled as well."""
    from isoscope.accumulate import Reservoir

    samples: list[Any] = []
    for run in (first, second):
        held = run.survey_of("rows").held.get(("rows", "all"), {})
        if Reservoir not in held:
            return 0.0
        samples.append(np.unique(held[Reservoir].state()["documents"]))
    return len(np.intersect1d(*samples)) / max(map(len, samples))


def _told(run: "Run") -> dict[str, object]:
    origin = run.origin
    model = origin.model
    told: dict[str, object] = {
        "model": model and model.model,
        "weights": model and model.sha,
        "tokenizer": model and model.tokenizer,
        "dtype": ", ".join(sorted({source.dtype for source in origin.sources})),
        "corpus": ", ".join(source.name for source in origin.sources),
        "width": ", ".join(sorted({str(source.width) for source in origin.sources})),
        "seed": origin.seed,
    }
    settings = {
        name: value
        for name, value in origin.settings.to_dict().items()
        if name not in _NOT_TOLD
    }
    return told | settings


def _short(value: object) -> str:
    text = "none" if value in (None, "") else str(value)
    return text if len(text) <= 40 else f"{text[:8]}…"
