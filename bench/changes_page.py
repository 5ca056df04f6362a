"""The tables of docs/trajectory-statistics.md, which are made of bench/changes.py."""

import json
from functools import cache
from pathlib import Path

from intervals_page import exact
from markdown_table import table

RESULTS = Path(__file__).parent / "results" / "changes.json"
LEVEL = 0.05
NAMED = ("ar-0.5", "ar-0.9", "walk", "sigmoid")
HEADS = ["AR(1), 0.5", "AR(1), 0.9", "random walk", "sigmoid"]
WORDS = {
    "onset": "onset",
    "sudden": "sudden",
    "together": "move together",
    "lead": "lead",
}
NOT_RUN = "Not run."
Key = tuple[str, str, int, float]


@cache
def found() -> dict[Key, dict]:
    """Return the cells by test, world, number of checkpoints and change."""
    cells = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    return {(c["test"], c["world"], c["n"], c["change"]): c for c in cells}


def alarms(cell: dict) -> int:
    """Return how many false alarms a cell without a change had."""
    return cell["alarms"] if "alarms" in cell else cell["found"]


def shown(cell: dict | None) -> str:
    """Return a share of false alarms, and whether 5 % is outside its 99 % interval."""
    if cell is None:
        return "–"
    low, high = exact(alarms(cell), cell["draws"])
    mark = " (above)" if low > LEVEL else " (below)" if high < LEVEL else ""
    return f"{100 * alarms(cell) / cell['draws']:.1f}{mark}"


def sizes(test: str) -> list[int]:
    """Return the numbers of checkpoints a test was run with."""
    return sorted({n for name, _, n, _ in found() if name == test})


def false_alarms() -> str:
    """Return the table of false alarms where the issue asks for them."""
    rows = [
        [WORDS[test], str(n), *(shown(found().get((test, world, n, 0))) for world in NAMED)]
        for test in WORDS
        for n in sizes(test)
    ]
    return table(["test", "checkpoints", *HEADS], rows) if rows else NOT_RUN


def other_alarms() -> str:
    """Return the table of false alarms in worlds that nothing was chosen for."""
    columns = [(test, n) for test in WORDS if test != "onset" for n in sizes(test)]
    worlds = dict.fromkeys(
        world
        for test, world, _, change in found()
        if change == 0 and world not in NAMED and test != "onset"
    )
    rows = [
        [world, *(shown(found().get((test, world, n, 0))) for test, n in columns)]
        for world in worlds
    ]
    heads = ["curves", *(f"{WORDS[test]}, {n}" for test, n in columns)]
    return table(heads, rows) if rows else NOT_RUN


def silent() -> str:
    """Return the table of how often there was no p-value although there were enough steps."""
    rows = []
    worlds = dict.fromkeys(w for t, w, _, c in found() if t == "together" and c == 0)
    columns = sizes("together")
    for world in worlds:
        cells = [found().get(("together", world, n, 0)) for n in columns]
        rows.append(
            [world, *(f"{100 * c['silent'] / c['draws']:.0f}" if c else "–" for c in cells)]
        )
    heads = ["curves", *(f"{n} checkpoints" for n in columns)]
    return table(heads, rows) if rows else NOT_RUN


def power(test: str) -> str:
    """Return the table of planted changes that were found, and how many near their place."""
    changes = sorted({c for t, _, _, c in found() if t == test and c})
    rows = []
    for n in sizes(test):
        for world, head in zip(NAMED, HEADS, strict=True):
            cells = [found().get((test, world, n, change)) for change in changes]
            rows.append([str(n), head, *(_found(cell) for cell in cells)])
    heads = ["checkpoints", "noise", *(f"{change:g}" for change in changes)]
    return table(heads, rows) if rows else NOT_RUN


def _found(cell: dict | None) -> str:
    if cell is None:
        return "–"
    share = f"{100 * cell['found'] / cell['draws']:.0f}"
    if "held" in cell and cell["found"] >= 20:
        near, held = (100 * cell[key] / cell["found"] for key in ("near", "held"))
        return f"{share} · {near:.0f} · {held:.0f}"
    if "near" in cell and "held" not in cell:
        return f"{share} · {100 * cell['near'] / cell['draws']:.0f}"
    return share


def following() -> str:
    """Return the table of pairs of which one curve follows the other."""
    rows = []
    for test in ("together", "lead"):
        changes = (0.5, 1, 2, 4)
        for n in sizes(test):
            for world, head in zip(NAMED, HEADS, strict=True):
                cells = [found().get((test, world, n, change)) for change in changes]
                rows.append([WORDS[test], str(n), head, *(_found(cell) for cell in cells)])
    heads = ["test", "checkpoints", "noise", "0.5", "1", "2", "4"]
    return table(heads, rows) if rows else NOT_RUN


def events() -> str:
    """Return the table of single events, and of pairs in which nobody leads."""
    rows = []
    for (test, world, n, change), cell in found().items():
        if ": " in world:
            kind, _, inner = world.partition(": ")
            head = HEADS[NAMED.index(inner)]
            rows.append([WORDS[test], kind, head, str(n), f"{change:g}", _found(cell)])
    heads = ["test", "what is shared", "noise", "checkpoints", "size", "found, %"]
    return table(heads, rows) if rows else NOT_RUN


TABLES = {
    "false-alarms": false_alarms,
    "other-alarms": other_alarms,
    "silent": silent,
    "onset-power": lambda: power("onset"),
    "sudden-power": lambda: power("sudden"),
    "following": following,
    "events": events,
}
