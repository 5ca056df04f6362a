"""The tables of docs/control.md, from bench/results/sweep.json and watch.json."""

import json
from pathlib import Path
from statistics import fmean, median

from markdown_table import table

RESULTS = Path(__file__).parent / "results"
NAMES = {"sst2": "SST-2", "stsb": "STS-B", "cola": "CoLA", "mrpc": "MRPC"}
PENALTIES = {
    "plain": "`IStar(zeta=0)`",
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
        "penalty", "weight", "debiased IsoScore moved", "held-out loss", "accuracy",
        "mean cosine moved", "moved per 0.01 of loss",
    ]  # fmt: skip
    lines = []
    for each in rows:
        loss, moved = each["loss"], each["debiased"]
        costs = loss["low"] > 0
        lines.append(
            [
                PENALTIES[each["penalty"]],
                f"{each['weight']:g}",
                apart(moved),
                apart(loss),
                apart(each["metric"]),
                apart(each["cosine"]),
                f"{moved['value'] / loss['value'] / 100:+.3f}" if costs else "–",
            ]
        )
    return table(heads, lines)


SIZES = {"small": "small BERT, from nothing", "minilm": "MiniLM, fine-tuned"}
RULES = ("usual", "fine-tuning")


def alarms() -> str:
    """Return how often rules cry wolf, with the range that so few runs leave open."""
    every = [(size, words) for size, words in SIZES.items() if size in found("watch")]
    if not every:
        return "Not run."
    heads = ["healthy runs", "learning", "runs", *(f"{rules} rules" for rules in RULES)]
    rows = []
    for size, words in every:
        runs = found("watch")[size]["healthy"]
        for task in dict.fromkeys(run["task"] for run in runs):
            these = [run for run in runs if run["task"] == task]
            rows.append([words, task, str(len(these)), *(cried(these, r) for r in RULES)])
        rows.append([words, "any of these", str(len(runs)), *(cried(runs, r) for r in RULES)])
    return table(heads, rows)


def cried(runs: list[dict], rules: str) -> str:
    """Return in how many runs there was an alarm, of which rules, and Wilson's interval."""
    loud = [run for run in runs if run[rules]]
    n, z = len(runs), 1.96
    middle, root = len(loud) / n + z * z / (2 * n), len(loud) / n * (1 - len(loud) / n)
    reach = z * (root / n + z * z / (4 * n * n)) ** 0.5
    low, high = ((middle + sign * reach) / (1 + z * z / n) for sign in (-1, 1))
    names = sorted({name for run in loud for name in run[rules]})
    said = f" ({', '.join(names)})" if names else ""
    return f"{len(loud)} [{100 * max(low, 0):.0f} to {100 * high:.0f} %]{said}"


def delays() -> str:
    """Return how many collapses were seen, and how many steps after they began."""
    every = [(size, words) for size, words in SIZES.items() if size in found("watch")]
    if not every:
        return "Not run."
    heads = [
        "collapse",
        "planted in",
        "runs",
        *(f"{rules} rules: seen, after" for rules in RULES),
    ]
    rows = []
    for size, words in every:
        runs = found("watch")[size]["collapse"]
        for kind in dict.fromkeys(run["kind"] for run in runs):
            these = [run for run in runs if run["kind"] == kind]
            rows.append([kind, words, str(len(these)), *(seen(these, r) for r in RULES)])
    return table(heads, rows)


def seen(runs: list[dict], rules: str) -> str:
    """Return how often and how soon an alarm came once there was something to see."""
    late = [
        min(step for step in run[rules].values() if step > run["onset"]) - run["onset"]
        for run in runs
        if any(step > run["onset"] for step in run[rules].values())
    ]
    early = sum(any(s <= run["onset"] for s in run[rules].values()) for run in runs)
    said = f"{len(late)}, {median(late):g} steps" if late else "0"
    return said + (f" ({early} cried before it)" if early else "")


def watching() -> str:
    """Return what a reading costs."""
    seen = found("watch").get("cost")
    if not seen:
        return "Not run."
    machine = seen["machine"]
    return (
        f"A step takes {seen['step']:.2f} s, one that is listened to {seen['listened']:.2f} s, "
        f"and reading the held-out texts {seen['reading']:.2f} s: "
        f"{100 * seen['share']:.2f} % of a hundred steps (processor time, "
        f"{machine['threads']} thread, torch {machine['torch']}; medians of 12)."
    )


TABLES = {
    "sweep": sweep,
    "verdict": verdict,
    "curves": curves,
    "alarms": alarms,
    "delays": delays,
    "watching": watching,
}
