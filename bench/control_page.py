"""The tables of docs/control.md, from bench/results/sweep.json and watch.json."""

import json
from pathlib import Path
from statistics import fmean

RESULTS = Path(__file__).parent / "results"
NAMES = {"sst2": "SST-2", "stsb": "STS-B", "cola": "CoLA", "mrpc": "MRPC"}
PENALTIES = {
    "plain": "`IStar(zeta=0)`",
    "scaled": "`IStar()`",
    "running": '`IStar(towards="running")`',
    "streamed": "`IStar()`, streamed",
    "debiased": "`DebiasedIsotropy()`",
    "cosreg": "`CosReg()`",
}
SURE = 0.05


def found(name: str) -> dict:
    """Return a file of results, empty where it was not run."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def layers(means: dict, measure: str) -> float:
    """Return the mean of a measure over the layers."""
    return fmean(v for site, v in means[measure].items() if site.startswith("resid."))


def apart(seen: dict | None, digits: int = 3) -> str:
    """Return a difference with its interval."""
    if seen is None:
        return ""
    value, low, high = (f"{seen[key]:+.{digits}f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def chance(p: float | None) -> str:
    """Return a p-value."""
    return "" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def sweep() -> str:
    """Return the table of all sweeps: a line for each task and weight."""
    tasks = found("sweep").get("tasks", {})
    if not tasks:
        return "Not run."
    heads = [
        "task", "weight", "metric", "difference to 0", "p", "p, Holm over all", "IsoScore*",
        "debiased IsoScore", "mean cosine", "TwoNN",
    ]  # fmt: skip
    rows = []
    for name, task in tasks.items():
        marked = "" if task["learnt"] else ", *not learnt*"
        title = f"{NAMES[name]}, {task['metric']} (baseline {task['baseline']:.3f}){marked}"
        start = [f"{layers(task['before'], m):.3f}" for m in SHOWN]
        rows.append([title, "before", "", "", "", "", *start])
        for line in task["lines"]:
            seen = line["difference"]
            rows.append(
                [
                    "",
                    f"{line['weight']:g}",
                    f"{line['mean']:.4f} ± {line['sd']:.4f}",
                    apart(seen, 4),
                    chance(seen and seen["p"]),
                    chance(seen and seen.get("p_all")),
                    *(f"{layers(line['after'], m):.3f}" for m in SHOWN),
                ]
            )
    return table(heads, rows)


SHOWN = ("isoscore-star", "isoscore-debiased", "mean-cosine", "twonn")


def verdict() -> str:
    """Return what the sweeps say about weights below zero, counted."""
    tasks = {n: t for n, t in found("sweep").get("tasks", {}).items() if t["learnt"]}
    if not tasks:
        return "Not run."
    lines = []
    for sign, words in ((-1, "below zero (less isotropy)"), (1, "above zero (more isotropy)")):
        seen = [
            (task, line)
            for task in tasks.values()
            for line in task["lines"]
            if line["weight"] * sign > 0
        ]
        better = [x for x in seen if x[1]["difference"]["value"] > 0]
        sure = [x for x in seen if (x[1]["difference"].get("p_all") or 1.0) < SURE]
        up = sum(x[1]["difference"]["value"] > 0 for x in sure)
        lines.append(
            f"- Weights {words}: {len(better)} of {len(seen)} comparisons are better than "
            f"weight 0; after Holm's correction {up} are surely better and {len(sure) - up} "
            "surely worse."
        )
    return "\n".join(lines)


def curves() -> str:
    """Return the table of penalties side by side."""
    rows = found("sweep").get("curves", [])
    if not rows:
        return "Not run."
    heads = [
        "penalty", "weight", "step", "debiased IsoScore moved", "held-out loss", "accuracy",
        "mean cosine moved", "moved per 0.01 of loss",
    ]  # fmt: skip
    lines = []
    for each in rows:
        if each["penalty"] == "none":
            continue
        loss, moved = each["loss"], each["debiased"]
        costs = loss["low"] > 0
        lines.append(
            [
                PENALTIES[each["penalty"]],
                f"{each['weight']:g}",
                str(each["step"]),
                apart(moved),
                apart(loss),
                apart(each["metric"]),
                apart(each["cosine"]),
                f"{moved['value'] / loss['value'] / 100:+.3f}" if costs else "–",
            ]
        )
    return table(heads, lines)


TABLES = {"sweep": sweep, "verdict": verdict, "curves": curves}
