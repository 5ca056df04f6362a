"""Are planted worlds explained rightly? Shares against population values, and intervals.

    python bench/explain.py

Two families of worlds: those of bench/worlds.py, single causes and mixtures in random
proportions, and those of bench/other_worlds.py, which were written from the definitions alone,
without sight of the code. Is resumed where it stopped; results go to
bench/results/explain.json, from which bench/pages.py writes the tables of docs/statistics.md.
"""

import json
from itertools import product
from pathlib import Path

import numpy as np
import other_worlds
from worlds import Plan, mixed, planted, sample_of, seen_by_survey

from isoscope.accumulate.row_bands import frequency_bands
from isoscope.causes import Attribution, CloudSums, attribute
from isoscope.errors import UndefinedError

RESULTS = Path(__file__).parent / "results" / "explain.json"
FIRST_SEED = 9_300_000
WIDTHS = (32, 384)
DOCUMENTS = (50, 200)
MANY = 1000  # documents, of one width
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
WORLDS = {"single": 4, "mixture": 8, "topics": 8, "other": 24}
TOPICS = 0.1


def cells() -> list[dict]:
    """Return what is to be run: a kind of world, its width, its number of documents."""
    out = []
    for name, documents in product(other_worlds.WORLDS, DOCUMENTS):
        out.append({"kind": "other", "what": name, "d": 384, "documents": documents})
    sizes = [*product(DOCUMENTS, WIDTHS), (MANY, 96)]
    for documents, d in sizes:
        for kind, names in (("mixture", WAYS), ("single", SINGLE)):
            out += [{"kind": kind, "what": n, "d": d, "documents": documents} for n in names]
    for documents, ways in product(DOCUMENTS, WAYS):
        out.append({"kind": "topics", "what": ways, "d": 192, "documents": documents})
    return out


def plan(cell: dict, seed: int) -> Plan:
    """Return the plan of one world of a cell."""
    if cell["kind"] == "single":
        return Plan((cell["what"],), cell["d"], cell["documents"])
    topics = TOPICS if cell["kind"] == "topics" else 0.0
    return mixed(cell["what"], cell["d"], cell["documents"], seed, topics)


def explained(cell: dict, seed: int) -> dict:
    """Return what is true of a world and what was found, share by share."""
    return other(cell, seed) if cell["kind"] == "other" else own(plan(cell, seed), seed)


def own(of: Plan, seed: int) -> dict:
    """Return what was found in a world of bench/worlds.py."""
    world = planted(of, seed)
    out = {"causes": of.causes, "strength": world.strength, "rogue": world.rogue}
    found = attributed(world.cloud)
    if found is None:
        return out | {"told": None}
    named = list(found.dimensions.named) if found.dimensions is not None else []
    return out | {"told": beside(world.population.truth(named), found), "dimensions": named}


def other(cell: dict, seed: int) -> dict:
    """Return what was found in a world of bench/other_worlds.py."""
    world, d = other_worlds.WORLDS[cell["what"]], cell["d"]
    drawn = other_worlds.draw(world, cell["documents"], d, seed)
    population = other_worlds.population(world, d)
    frequency = frequency_bands(world.token_shares())[drawn.token]
    cloud = seen_by_survey(drawn.rows, drawn.document, drawn.position, frequency)
    sample = sample_of(drawn.rows, drawn.document, drawn.position)
    found = attributed(cloud, sample)
    if found is None:
        return {"told": None}
    named = list(found.dimensions.named) if found.dimensions is not None else []
    truth = {"sinks": population.sinks, "mean": population.C / population.T_FP}
    if set(named) == set(population.dimensions):
        truth["dimensions"] = population.dimensions_share
        truth["falls to"] = population.falls_to
    for cause, parts in population.parts.items():
        truth |= {
            cause: parts.shapley,
            f"{cause} first": parts.first,
            f"{cause} last": parts.last,
            f"{cause} alone": population.alone[cause],
        }
        first = 0 if cause == "frequency" else 5
        truth |= {
            f"band {first + band}": float(part)
            for band, part in enumerate(population.contributions[cause])
        }
    return {"told": beside(truth, found), "dimensions": named, "rogue": population.dimensions}


def attributed(cloud: CloudSums, sample: object = None) -> Attribution | None:
    """Return what explains a cloud; None where there is nothing to explain."""
    try:
        return attribute(cloud, sample)
    except UndefinedError:
        return None


def beside(truth: dict[str, float], found: Attribution) -> dict[str, list]:
    """Return for every share that was found its truth, its value and its interval."""
    shares = {"sinks": found.sinks}
    if found.dimensions is not None:
        shares["dimensions"] = found.dimensions.share
    if found.zeroed is not None:
        shares["falls to"] = found.zeroed[1]
    if found.dependences is not None:
        shares["mean"] = found.dependences.mean
        for cause, each in found.dependences.causes.items():
            shares |= {
                cause: each.shapley,
                f"{cause} first": each.first,
                f"{cause} last": each.last,
                f"{cause} alone": each.alone,
            }
            shares |= {f"band {band.number}": band.contribution for band in each.bands}
    return {
        name: [truth[name], share.value, share.low, share.high]
        for name, share in shares.items()
        if share is not None and name in truth
    }


def rounded(value: object) -> object:
    """Return plain values of four digits: the file is read by people too."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return round(float(value), 5) if isinstance(value, float | np.floating) else value


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
        seeds = range(FIRST_SEED, FIRST_SEED + WORLDS[cell["kind"]])
        worlds = [rounded(explained(cell, seed)) for seed in seeds]
        done.append(cell | {"worlds": worlds})
        part = RESULTS.with_suffix(".part")
        part.write_text(written(done))
        part.replace(RESULTS)
        print(cell, flush=True)


if __name__ == "__main__":
    main()
