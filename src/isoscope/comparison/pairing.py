"""How two runs are paired: site with site, document group with document group."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isoscope.accumulate import Reservoir
from isoscope.site import Site, is_matrix
from isoscope.store import Run
from isoscope.types import Array

MATCHES = ("name", "depth")
SHARED = 0.5  # share of the sampled documents from which on two collections count as the same
_SHOWN = {"measures", "sites", "documents", "known_by", "skip_bad"}  # shown elsewhere


# --- sites --------------------------------------------------------------------------------
def match_sites(first: Sequence[str], second: Sequence[str], how: str) -> list[tuple[str, str]]:
    """Return pairs of sites, in the order of the first run: same name, or relative depth."""
    if how == "name":
        return [(site, site) for site in first if site in set(second)]
    ours, theirs = _families(first), _families(second)
    layers: dict[str, str] = {}
    for family, sites in ours.items():
        if family in theirs:
            layers |= _by_depth(sites, theirs[family])
    numbered = {site for sites in ours.values() for site in sites.values()}
    return [
        (site, layers[site] if site in numbered else site)
        for site in first
        if (site in layers) or (site not in numbered and site in set(second))
    ]


def _families(sites: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the sites that are layers, by family and layer number."""
    found: dict[str, dict[int, str]] = {}
    for name in sites:
        site = Site.parse(name)
        if site.layer is not None and site.head is None:
            found.setdefault(site.group, {})[site.layer] = name
    return found


def _by_depth(ours: dict[int, str], theirs: dict[int, str]) -> dict[str, str]:
    """Return each layer of the shallower model with that of the other at the same depth."""
    shallow, deep = (ours, theirs) if len(ours) <= len(theirs) else (theirs, ours)
    top, bottom = max(max(shallow), 1), max(max(deep), 1)
    pairs: dict[str, str] = {}
    for number, site in shallow.items():
        near = min(deep, key=lambda other: (abs(other / bottom - number / top), other))
        pairs |= {site: deep[near]} if shallow is ours else {deep[near]: site}
    return pairs


# --- documents ----------------------------------------------------------------------------
@dataclass(frozen=True)
class Pairing:
    """Whether differences are paired by document group, and why."""

    documents: bool
    matrices: bool
    why: str

    def at(self, site: str) -> bool:
        """Whether a site's readings are paired."""
        # rows of a matrix are tokens, whatever the corpus
        return self.matrices if is_matrix(site) else self.documents


def pairing(first: Run, second: Run) -> Pairing:
    """Return how the readings of two runs are paired.

    Pairing needs documents that fall into the same groups in both: the same corpus, or the
    same ids of documents, dealt with the same seed.
    """
    seeds = first.origin.seed, second.origin.seed
    if seeds[0] != seeds[1]:
        why = f"the seeds differ ({seeds[0]} and {seeds[1]}), and so do document groups"
        return Pairing(False, False, f"independent: {why}")
    known = first.settings.known_by, second.settings.known_by
    if known[0] != known[1]:
        why = "documents are identified in different ways; measure both again in one way"
        return Pairing(False, True, f"independent: {why}")
    if _prints(first) == _prints(second):
        return Pairing(True, True, f"paired by document group: {_same_corpus(first, second)}")
    if first.origin.kind == second.origin.kind == "vectors":
        share = _shared_documents(first, second)
        if share >= SHARED:
            why = f"{share:.0%} of the sampled documents or rows are in both runs"
            return Pairing(True, True, f"paired by document group: {why}")
        why = "a and b have different documents; --document or --by-order identify rows"
        return Pairing(False, False, f"independent: {why}")
    names = [" + ".join(s.name for s in run.origin.sources) for run in (first, second)]
    return Pairing(False, True, f"independent: the corpora differ ({' and '.join(names)})")


def differences(first: Run, second: Run) -> list[str]:
    """Return the settings in which two runs differ, each as `name x and y`."""
    ours, theirs = _settings(first), _settings(second)
    pairs = {
        name: (_short(ours.get(name)), _short(theirs.get(name)))
        for name in dict.fromkeys((*ours, *theirs))
    }
    return [f"{name} {a} and {b}" for name, (a, b) in pairs.items() if a != b]


def _prints(run: Run) -> list[str]:
    return sorted(source.fingerprint for source in run.origin.sources)


def _same_corpus(first: Run, second: Run) -> str:
    name = " + ".join(source.name for source in first.origin.sources)
    counts = [
        sum(source.documents or 0 for source in run.origin.sources) for run in (first, second)
    ]
    if counts[0] == counts[1]:
        of = f"{counts[0]} documents of " if counts[0] else ""
        return f"both read the same {of}{name}"
    return f"both read {name}, {counts[0]} documents in a and {counts[1]} in b"


def _shared_documents(first: Run, second: Run) -> float:
    """Return the share of sampled documents that are in both runs."""
    samples: list[Array] = []
    for run in (first, second):
        here = run.survey_of("rows").held.get(("rows", "all"), {})
        if Reservoir not in here:
            return 0.0
        samples.append(np.unique(here[Reservoir].state()["documents"]))
    ours, theirs = samples
    return len(np.intersect1d(ours, theirs)) / max(len(ours), len(theirs))


def _settings(run: Run) -> dict[str, object]:
    origin, model = run.origin, run.origin.model
    basics: dict[str, object] = {
        "model": model and model.model,
        "weights": model and model.sha,
        "tokenizer": model and model.tokenizer,
        "dtype": ", ".join(sorted({source.dtype for source in origin.sources})),
        "corpus": ", ".join(source.name for source in origin.sources),
        "width": ", ".join(sorted({str(source.width) for source in origin.sources})),
        "seed": origin.seed,
    }
    settings = origin.settings.to_dict().items()
    return basics | {name: value for name, value in settings if name not in _SHOWN}


def _short(value: object) -> str:
    text = "none" if value in (None, "") else str(value)
    return text if len(text) <= 40 else f"{text[:8]}…"
