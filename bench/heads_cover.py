"""How often the intervals of attention heads cover the truth, in simulation.

    python bench/heads_cover.py          300 worlds of each kind; about twenty minutes

A world has mean queries and keys that align, oppose each other or are orthogonal. Documents
have means of their own about these, lengths from 20 to 80, and queries and keys about the
means of their document; attention is causal, and a key now and then is a sink. Sixteen
queries per document are looked at. The truth is the reading of 6,000 documents and all
queries. Results go to bench/results/heads_cover.json as they come.
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
WIDTH = 8
WORLDS = {"aligned": (1, 1), "opposed": (1, -1), "orthogonal": (1, 0)}
DOCUMENTS = (40, 200)
TIMES = 300


def document(rng, kind):
    """Return queries, keys and which keys are sinks, of one document."""
    length = int(rng.integers(20, 81))
    along, across = np.eye(WIDTH)[0], np.eye(WIDTH)[1]
    sign = WORLDS[kind][1]
    mean_key = sign * along if sign else across
    spread = np.linspace(1.5, 0.5, WIDTH)
    queries = (
        1.5 * along + 0.3 * rng.normal(size=WIDTH) + rng.normal(size=(length, WIDTH)) * spread
    )
    keys = mean_key + 0.3 * rng.normal(size=WIDTH) + rng.normal(size=(length, WIDTH)) * spread
    return queries, keys, rng.random(length) < 0.05


def statistics(queries, keys, sinks, chosen):
    """Return the statistics of chosen queries, causal."""
    rows, scale = [], WIDTH**-0.5
    for place in chosen:
        scores = keys[: place + 1] @ queries[place] * scale
        p = np.exp(scores - scores.max())
        p /= p.sum()
        several = place > 0
        relative = -(p * np.log(p)).sum() / np.log(place + 1) if several else 0.0
        on_sinks = p[sinks[: place + 1]].sum()
        rows.append((1, scores.std(), several, relative, p.max(), p[0], on_sinks, scale))
    return np.array(rows) * (len(queries) / len(chosen))


def read(rng, kind, documents, queries):
    """Return the readings of a head over documents of a world."""
    names = named_documents(np.array([f"{rng.integers(2**62)}" for _ in range(documents)]))
    parts = {kind_: kind_(WIDTH) for kind_ in (Queries, Keys, Tally)}
    scores = QueryScores(len(STATISTICS))
    for start in range(0, documents, 500):
        found = [document(rng, kind) for _ in names[start : start + 500]]
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
    for kind in WORLDS:
        truth = known.get(f"{kind} truth")
        if truth is None:
            rng = np.random.default_rng([7, list(WORLDS).index(kind)])
            truth = {n: r.value for n, r in read(rng, kind, 6000, None).items()}
            known[f"{kind} truth"] = truth
        for documents in DOCUMENTS:
            name = f"{kind}, {documents} documents"
            cell = known.setdefault(name, {"times": 0, "covered": {}, "given": {}})
            for number in range(cell["times"], times):
                rng = np.random.default_rng([8, list(WORLDS).index(kind), documents, number])
                for each in read(rng, kind, documents, 16).values():
                    if each.low is None:
                        continue
                    given, covered = cell["given"], cell["covered"]
                    given[each.measure] = given.get(each.measure, 0) + 1
                    hit = each.low <= truth[each.measure] <= each.high
                    covered[each.measure] = covered.get(each.measure, 0) + int(hit)
                cell["times"] = number + 1
                if number % 20 == 19:
                    RESULTS.write_text(json.dumps(known, indent=1) + "\n")
            RESULTS.write_text(json.dumps(known, indent=1) + "\n")
            print(name, {m: round(c / cell["given"][m], 3) for m, c in cell["covered"].items()})


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else TIMES)
