"""How often the intervals of attention heads cover the truth, in simulation.

    python bench/heads_cover.py          400 draws of each world; about ten minutes

A world has mean queries and keys that align (a cosine of 0.8), oppose each other (-0.8) or are
orthogonal. Where they align exactly the truth is at the end of what a cosine can be. Documents
have means of their own about these, lengths from 20 to 80, and queries and keys about the
means of their document; attention is causal, and a key now and then is a sink. Sixteen
queries per document are looked at. The truth is the reading of 6,000 documents and all
queries. Readings that warn of a mean that is mostly noise are counted apart. Results go to
bench/results/heads_cover.json as they come.
"""

import json
import sys
from pathlib import Path

import numpy as np

from isoscope.accumulate import ArrayBlock, Keys, Queries, QueryScores, Tally
from isoscope.accumulate.heads import STATISTICS
from isoscope.accumulate.survey import Survey
from isoscope.capture.head_sums import draw_queries
from isoscope.hashing import named_documents
from isoscope.study.measure_choice import head_measures
from isoscope.study.reading import read_survey

RESULTS = Path(__file__).parent / "results" / "heads_cover.json"
TRUTH = 6000  # documents
# by name: the length of the mean query, its cosine with the mean key, and the width
WORLDS = {
    "aligned": (1.5, 0.8, 8),
    "opposed": (1.5, -0.8, 8),
    "orthogonal": (1.5, 0.0, 8),
    "aligned, width 64": (1.5, 0.8, 64),
    "orthogonal, width 64": (1.5, 0.0, 64),
    "short means, width 64": (0.2, 0.8, 64),
    "exactly aligned": (1.5, 1.0, 8),
}
DOCUMENTS = (40, 200)
TIMES = 400


def document(rng, world):
    """Return queries, keys and which keys are sinks, of one document."""
    long, cosine, width = WORLDS[world]
    length = int(rng.integers(20, 81))
    # no axis of the cloud: the first singular vector lies between it and the mean
    along = np.ones(width) / np.sqrt(width)
    across = along * (-1) ** np.arange(width)
    mean_key = long / 1.5 * (cosine * along + np.sqrt(1 - cosine**2) * across)
    spread = np.linspace(1.5, 0.5, width)
    rows = rng.normal(size=(2, length, width)) * spread + 0.3 * rng.normal(size=(2, 1, width))
    return rows[0] + long * along, rows[1] + mean_key, rng.random(length) < 0.05


def statistics(queries, keys, sinks, chosen):
    """Return the statistics of chosen queries, causal, each times what it stands for."""
    scale = queries.shape[1] ** -0.5
    scores = queries[chosen] @ keys.T * scale  # (chosen, keys)
    visible = np.arange(len(keys)) <= chosen[:, None]
    count = visible.sum(axis=1)
    p = np.where(visible, np.exp(scores - scores.max(axis=1, keepdims=True)), 0.0)
    p /= p.sum(axis=1, keepdims=True)
    several = count > 1
    entropy = -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=1)
    relative = np.where(several, entropy / np.log(np.maximum(count, 2)), 0.0)
    mean = np.where(visible, scores, 0.0).sum(axis=1) / count
    off = np.where(visible, scores - mean[:, None], 0.0)
    spread = np.sqrt(np.square(off).sum(axis=1) / count)
    one = np.ones(len(chosen))
    parts = one, spread, several, relative, p.max(axis=1), p[:, 0], p @ sinks, one * scale
    return np.column_stack(parts) * (len(queries) / len(chosen))


def read(rng, world, documents, queries):
    """Return the readings of a head over documents of a world."""
    width = WORLDS[world][2]
    names = named_documents(np.array([f"{rng.integers(2**62)}" for _ in range(documents)]))
    parts = {kind: kind(width) for kind in (Queries, Keys, Tally)}
    scores = QueryScores(len(STATISTICS))
    for start in range(0, documents, 500):
        found = [document(rng, world) for _ in names[start : start + 500]]
        here = names[start : start + 500]
        lengths = np.array([len(each[0]) for each in found])
        of, at = np.repeat(here, lengths), np.concatenate([np.arange(n) for n in lengths])
        for number, each in ((0, Queries), (1, Keys)):
            rows = np.concatenate([one[number] for one in found])
            block = ArrayBlock(rows, of, at.astype(np.uint64), folded=True)
            parts[each].update(block)
            if each is Queries:
                parts[Tally].update(block)
        drawn = draw_queries(here, lengths, queries, 0)
        rows = [statistics(*one, chosen) for one, chosen in zip(found, drawn, strict=True)]
        sizes = [len(each) for each in rows]
        scores.update(
            ArrayBlock(
                np.concatenate(rows),
                np.repeat(here, sizes),
                np.concatenate(drawn).astype(np.uint64),
                folded=True,
            )
        )
    held = {("head.0.0", "all"): {**parts, QueryScores: scores}}
    return {each.measure: each for each in read_survey(Survey(held), head_measures())[0]}


def main(times):
    """Count how often intervals cover, world by world."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for number, world in enumerate(WORLDS):
        truth = known.get(f"{world} truth")
        if truth is None:
            rng = np.random.default_rng([7, number])
            truth = {n: r.value for n, r in read(rng, world, TRUTH, None).items()}
            known[f"{world} truth"] = truth
        for documents in DOCUMENTS:
            name = f"{world}, {documents} documents"
            cell = known.setdefault(
                name, {"times": 0, "covered": {}, "given": {}, "warned": {}}
            )
            for draw in range(cell["times"], times):
                rng = np.random.default_rng([8, number, documents, draw])
                for each in read(rng, world, documents, 16).values():
                    count(cell, each, truth[each.measure])
                cell["times"] = draw + 1
                if draw % 20 == 19:
                    RESULTS.write_text(json.dumps(known, indent=1) + "\n")
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")
            shares = {m: round(c / cell["given"][m], 3) for m, c in cell["covered"].items()}
            print(name, shares, cell["warned"], flush=True)


def count(cell, reading, truth):
    """Count a reading: without an interval, warned of, or covering the truth or not."""
    if any("no longer than its error" in text for text in reading.warnings):
        cell["warned"][reading.measure] = cell["warned"].get(reading.measure, 0) + 1
    elif reading.low is not None:
        given, covered = cell["given"], cell["covered"]
        given[reading.measure] = given.get(reading.measure, 0) + 1
        hit = reading.low <= truth <= reading.high
        covered[reading.measure] = covered.get(reading.measure, 0) + int(hit)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TIMES)
