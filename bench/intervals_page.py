"""The tables of docs/statistics.md that are made of bench/intervals.py."""

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path

from markdown_table import table
from scipy.stats import beta

RESULTS = Path(__file__).parent / "results"
PARTS = ("minilm", "smollm", "planted")
REAL = ("minilm", "smollm")
BAND = (0.90, 0.98)  # what an interval of 95 % may cover
LEVEL = 0.05  # of false changes
MANY = 100  # documents of real states from which on warnings should be rare
NOT_RUN = "Not run."
DESIGNS = (  # in the order of the tables
    "40 documents of 200 rows, 400 of 20",
    "two models, the same 100 documents",
    "topics",
    "Pareto lengths",
    "two directions",
    "two directions, Pareto lengths",
    "elliptical rows",
    "sinks",
)


@cache
def found(part: str, run: str = "intervals") -> list[dict]:
    """Return the finished results of a part, empty where it was not run."""
    path = RESULTS / f"{run}-{part}.json"
    records = json.loads(path.read_text()) if path.exists() else []
    return sorted((each for each in records if "ran" not in each), key=_place)


def _place(cell: dict) -> tuple[int, list, int]:
    """Return where a cell stands in its table: by design, block and number of documents."""
    name = cell["name"]
    of = DESIGNS.index(name) if name in DESIGNS else len(DESIGNS)
    words = [int(word) if word.isdigit() else 0 for word in re.split(r"[ .,]+", name)]
    return of, words, cell["documents"]


def code_of(cell: dict) -> str:
    """Return which code a cell is of: the last decision that it knew."""
    return str(cell.get("code", "older"))


def exact(hits: int, of: int) -> tuple[float, float]:
    """Return the 99 % interval of a share (Clopper and Pearson)."""
    low = beta.ppf(0.005, hits, of - hits + 1) if hits else 0.0
    high = beta.ppf(0.995, hits + 1, of - hits) if hits < of else 1.0
    return float(low), float(high)


def fails(hits: int, of: int) -> bool:
    """Whether coverage without a warning is surely outside what it may be."""
    low, high = exact(hits, of)
    return of > 0 and (high < BAND[0] or low > BAND[1])


def failing(cell: dict) -> dict[str, float]:
    """Return the measures whose intervals fail in a cell, with their coverage."""
    return {
        name: c["held"] / c["draws"]
        for name, c in cell["of"].items()
        if fails(c["held"], c["draws"])
    }


def _per_cent(hits: int, of: int) -> str:
    return f"{100 * hits / of:.0f}" if of else "–"


def _named(shares: dict[str, float]) -> str:
    return ", ".join(f"`{name}` {100 * share:.0f}" for name, share in shares.items()) or "none"


def latest(part: str) -> list[dict]:
    """Return the results of a part, of the first run where there is no other."""
    return found(part) or found(part, "intervals-first")


def held() -> str:
    """Return how often intervals hold the truth, cell by cell, then and now."""
    if not any(latest(part) for part in PARTS):
        return NOT_RUN
    first = {
        (each["name"], each["documents"]): each
        for part in PARTS
        for each in found(part, "intervals-first")
    }
    rows = []
    for cell in (each for part in PARTS for each in latest(part)):
        counts = cell["of"].values()
        plain = [c["held"] / c["draws"] for c in counts if c["draws"]]
        before = first.get((cell["name"], cell["documents"]))
        total = sum(c["draws"] + c["warned"] + c["none"] for c in counts)
        rows.append(
            [
                cell["name"],
                str(cell["documents"]),
                _per_cent(sum(c["draws"] for c in counts), total),
                f"{100 * min(plain):.0f} to {100 * max(plain):.0f}" if plain else "–",
                _named(failing(cell)),
                _per_cent(
                    sum(c["warned held"] for c in counts), sum(c["warned"] for c in counts)
                ),
                "–" if before is None else str(len(failing(before))),
                code_of(cell),
            ]
        )
    heads = [
        "population",
        "documents",
        "readings without a warning, %",
        "of these hold the truth, by measure, %",
        "fail, %",
        "with a warning hold it, %",
        "failed in the first run",
        "decision",
    ]
    return table(heads, rows)


def warned() -> str:
    """Return how often each warning is given, and whether readings with it hold the truth."""
    groups = {
        f"real, {MANY} documents or more": lambda part, cell: (
            part in REAL and cell["documents"] >= MANY
        ),
        "real, fewer": lambda part, cell: part in REAL and cell["documents"] < MANY,
        "planted": lambda part, _: part not in REAL,
    }
    shown: dict[str, list[str]] = {}
    some: list[str] = []  # how many readings have any warning
    for belongs in groups.values():
        fired, holds, total = Counter(), Counter(), 0
        marked = right_of_marked = 0
        for part in PARTS:
            for cell in latest(part):
                if not belongs(part, cell):
                    continue
                counts = cell["of"].values()
                total += sum(c["draws"] + c["warned"] + c["none"] for c in counts)
                marked += sum(c["warned"] for c in counts)
                right_of_marked += sum(c["warned held"] for c in counts)
                for kind, (n, right) in cell["warnings"].items():
                    fired[kind] += n
                    holds[kind] += right
        shown[""] = [*shown.get("", []), f"{total:,} readings"]
        share = f"{100 * marked / total:.1f}" if total else "–"
        some.append(f"{share} ({_per_cent(right_of_marked, marked)})")
        for kind in {*fired, *shown} - {""}:
            cells = shown.setdefault(kind, [])
            cells += ["–"] * (len(shown[""]) - 1 - len(cells))
            if fired[kind]:
                share = f"{100 * fired[kind] / total:.1f}"
                cells.append(f"{share} ({_per_cent(holds[kind], fired[kind])})")
            else:
                cells.append("–")
    if len(shown) < 2:
        return NOT_RUN
    total_row = ["of", *shown.pop("")]
    rows = [[kind, *cells] for kind, cells in sorted(shown.items())]
    return table(["warning", *groups], [total_row, ["any", *some], *rows])


def unchanged() -> str:
    """Return how often nothing changed and `compare` says it did."""
    if not latest("changed"):
        return NOT_RUN
    first = {each["name"]: each for each in found("changed", "intervals-first")}
    rows = []
    for cell in latest("changed"):
        shares = {n: c["changed"] / c["pairs"] for n, c in cell["of"].items() if c["pairs"]}
        worst = max(shares, key=lambda name: shares[name])
        caveats = {n: c["caveat"] / c["pairs"] for n, c in cell["of"].items() if c["caveat"]}
        before = first.get(cell["name"])
        rows.append(
            [
                cell["name"],
                f"`{worst}` {100 * shares[worst]:.1f}",
                _named(false_changes(cell)),
                _named(caveats),
                "–" if before is None else _named(false_changes(before)),
                code_of(cell),
            ]
        )
    heads = [
        "two collections of one population",
        'most often "changed" without a caveat, %',
        "surely above 5 %",
        '"changed" with a caveat, %',
        "surely above 5 % in the first run",
        "decision",
    ]
    return table(heads, rows)


def false_changes(cell: dict) -> dict[str, float]:
    """Return the measures that are surely more often "changed" than they may be."""
    return {
        name: c["changed"] / c["pairs"]
        for name, c in cell["of"].items()
        if c["pairs"] and exact(c["changed"], c["pairs"])[0] > LEVEL
    }


TABLES = {"held": held, "warned": warned, "unchanged": unchanged}
