"""How two runs are paired: site with site, document group with document group."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from isoscope.accumulate import Reservoir, Tally, accumulator_of
from isoscope.accumulate.survey import Accumulators
from isoscope.dataclass import dataclass
from isoscope.site import Site, is_matrix
from isoscope.store import Run
from isoscope.types import Array

MATCHES = ("name", "depth")
SHARED = 0.5  # share of the sampled documents from which on two collections count as the same
_SHOWN = {"measures", "sites", "documents", "known_by", "skip_bad"}  # shown elsewhere


# --- sites --------------------------------------------------------------------------------
def match_sites(
    first: Sequence[str],
    second: Sequence[str],
    how: str,
    layers: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {}),
) -> list[tuple[str, str]]:
    """Return pairs of sites, in the order of the first run: same name, or relative depth.

    `layers` has the number of layers of each family in either model. Where that is not known,
    the deepest site that was surveyed counts as the last layer.
    """
    if how == "name":
        return [(site, site) for site in first if site in set(second)]
    ours, theirs = _families(first), _families(second)
    matched: dict[str, str] = {}
    for family, sites in ours.items():
        if family in theirs:
            counts = [
                known.get(family, max(each) + 1)
                for known, each in zip(layers, (sites, theirs[family]), strict=True)
            ]
            matched |= _by_depth(sites, theirs[family], counts)
    numbered = {site for sites in ours.values() for site in sites.values()}
    return [
        (site, matched[site] if site in numbered else site)
        for site in first
        if (site in matched) or (site not in numbered and site in set(second))
    ]


def unknown_depths(first: Run, second: Run) -> str:
    """Return a remark on runs that do not say how deep their model is; empty for none."""
    missing = [
        label
        for label, run in (("a", first), ("b", second))
        if not layers_of(run) and _families(each.site for each in run.readings)
    ]
    if not missing:
        return ""
    return (
        f"the number of layers is not stored in {' and '.join(missing)}: the deepest site "
        "that was surveyed counts as the last layer"
    )


def layers_of(run: Run) -> Mapping[str, int]:
    """Return the number of layers of each family of sites, as far as it is stored."""
    return {} if run.origin.model is None else run.origin.model.layers


def _families(sites: Iterable[str]) -> dict[str, dict[int, str]]:
    """Return the sites that are layers, by family and layer number."""
    found: dict[str, dict[int, str]] = {}
    for name in sites:
        site = Site.parse(name)
        if site.layer is not None and site.head is None:
            found.setdefault(site.group, {})[site.layer] = name
    return found


def _by_depth(
    ours: dict[int, str], theirs: dict[int, str], counts: Sequence[int]
) -> dict[str, str]:
    """Return each layer of the shallower model with that of the other at the same depth.

    Which layers belong together depends on the models alone: where one of the two was not
    surveyed, the other has no match.
    """
    swapped = counts[0] > counts[1]
    shallow, deep = (theirs, ours) if swapped else (ours, theirs)
    few, many = sorted(counts)
    pairs: dict[str, str] = {}
    for number, site in shallow.items():
        depth = number / max(few - 1, 1)
        near = min(range(many), key=lambda n: (abs(n / max(many - 1, 1) - depth), n))
        if near in deep:
            pairs |= {deep[near]: site} if swapped else {site: deep[near]}
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
    """Return the share of sampled documents that are in both runs.

    Every run has a sample of its documents; those of earlier versions have one of rows, if
    a measure needed it.
    """
    places = [run.survey_of("rows").held.get(("rows", "all"), {}) for run in (first, second)]
    for sample_of in (_tally_sample, _row_sample):
        ours, theirs = map(sample_of, places)
        if len(ours) and len(theirs):
            return len(np.intersect1d(ours, theirs)) / max(len(ours), len(theirs))
    return 0.0


def _tally_sample(here: Accumulators) -> Array:
    return accumulator_of(here, Tally).sample if Tally in here else np.zeros(0)


def _row_sample(here: Accumulators) -> Array:
    return np.unique(here[Reservoir].state()["documents"]) if Reservoir in here else np.zeros(0)


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
