"""Are planted worlds explained rightly? Single causes and mixtures in random proportions.

    python bench/explain.py

Goes on where it stopped; results go to bench/results/explain.json, from which
bench/pages.py writes the tables of docs/statistics.md.
"""

import json
from itertools import product
from pathlib import Path

import numpy as np
from worlds import CAUSES, Plan, mixed, planted

from isoscope.causes import attribute
from isoscope.errors import UndefinedError

RESULTS = Path(__file__).parent / "results" / "explain.json"
FIRST_SEED = 8_700_000
WIDTHS = (32, 64, 96, 192, 384, 768)
DOCUMENTS = (50, 200, 1000)
MANY = (32, 64, 192)  # widths of the most documents: wider clouds are told from fewer
SINGLE = (
    "sinks",
    "dimensions",
    "frequency:step",
    "frequency:gradual",
    "position:fast",
    "position:slow",
    "mean",
)
WAYS = (2, 3, 4, 5)
WORLDS = {"single": 8, "mixture": 16, "topics": 16}
TOPICS = 0.1


def cells() -> list[dict]:
    """Return what is to be run: a kind of world, its width, its number of documents."""
    out = []
    for documents, d in product(DOCUMENTS, WIDTHS):
        if documents == max(DOCUMENTS) and d not in MANY:
            continue
        out += [
            {"kind": "mixture", "what": ways, "d": d, "documents": documents} for ways in WAYS
        ]
        out += [
            {"kind": "single", "what": name, "d": d, "documents": documents} for name in SINGLE
        ]
    for documents, ways in product(DOCUMENTS, WAYS):
        out.append({"kind": "topics", "what": ways, "d": 192, "documents": documents})
    return out


def plan(cell: dict, seed: int) -> Plan:
    """Return the plan of one world of a cell."""
    if cell["kind"] == "single":
        return Plan((cell["what"],), cell["d"], cell["documents"])
    topics = TOPICS if cell["kind"] == "topics" else 0.0
    return mixed(cell["what"], cell["d"], cell["documents"], seed, topics)


def explained(of: Plan, seed: int) -> dict:
    """Return what was planted in a world and what was found, cause by cause."""
    world = planted(of, seed)
    out = {"causes": of.causes, "strength": world.strength, "rogue": world.rogue}
    try:
        found = attribute(world.cloud)
    except UndefinedError:
        return out | {"told": None}
    shares = {name: (s.value, s.low, s.high) for name, s in found.shares.items()}
    told = {name: [world.truth[name], *shares[name]] for name in CAUSES}
    return out | {"told": told, "dimensions": tuple(found.dimensions)}


def rounded(value: object) -> object:
    """Return plain values of four digits: the file is read by people too."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return round(float(value), 4) if isinstance(value, float | np.floating) else value


def written(done: list[dict]) -> str:
    """Return the results as JSON, a world a line."""
    parts = []
    for each in done:
        worlds = ",\n".join(json.dumps(world) for world in each["worlds"])
        head = json.dumps({key: value for key, value in each.items() if key != "worlds"})
        parts.append(f'{head[:-1]}, "worlds": [\n{worlds}\n]}}')
    return "[\n" + ",\n".join(parts) + "\n]\n"


def main() -> None:
    """Run what has not been run."""
    RESULTS.parent.mkdir(exist_ok=True)
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    ran = [{key: each[key] for key in ("kind", "what", "d", "documents")} for each in done]
    for cell in cells():
        if cell in ran:
            continue
        worlds = []
        for number in range(WORLDS[cell["kind"]]):
            seed = FIRST_SEED + number
            worlds.append(rounded(explained(plan(cell, seed), seed)))
        done.append(cell | {"worlds": worlds})
        part = RESULTS.with_suffix(".part")
        part.write_text(written(done))
        part.replace(RESULTS)
        print(cell, flush=True)


if __name__ == "__main__":
    main()
