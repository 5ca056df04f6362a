"""Write the tables of statistics, benchmarks, control, trajectories, ablations and scale.

python bench/pages.py           write the tables into the pages
python bench/pages.py --check   exit 1 where a page says something else
"""

import json
import sys
from functools import cache
from pathlib import Path
from statistics import median, quantiles

from ablation_page import NURSERY
from ablation_page import TABLES as ABLATION
from changes_page import TABLES as CHANGES
from control_page import TABLES as CONTROL
from intervals_page import TABLES as INTERVALS
from intervals_page import code_of
from markdown_table import fill_page, table
from scale_page import TABLES as SCALE

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results"
DOCS = ROOT / "docs"
SURVEYS = ["minilm", "smollm", "llama", "wide"]  # parts of bench/wait.py
MEASURES = ("mean-cosine-cross", "isoscore-debiased", "effective-rank-debiased")


@cache
def found(name: str) -> list | dict:
    """Return a file of results, empty where it was not run."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else []


def described(design: dict) -> str:
    """Return a design in words."""
    spectrum = {0.0: "white", 0.5: "i^-1/2", 1.0: "i^-1"}[design["power"]]
    low, high = design["tokens"]
    sizes = f"{low}" if low == high else f"{low} to {high}"
    rows = f"{design['rows']:,} independent rows"
    if design["documents"]:
        rows = f"{design['documents']} documents of {sizes} rows, correlation {design['rho']:g}"
    tails = ", lognormal(0.5) lengths" if design["scales"] == "lognormal" else ""
    return f"d = {design['d']}, {rows}, {spectrum}{tails}"


def bias() -> str:
    """Return the table of debiased IsoScore against the truth."""
    heads = ["collection", "draws", "truth", "plain, mean", "debiased, mean", "sd of a draw"]
    heads.append("decision")
    rows = [
        [
            described(each["design"]),
            str(each["repetitions"]),
            f"{each['truth']:.4f}",
            f"{each['isoscore']:.4f}",
            f"{each['isoscore-debiased']:.4f}",
            f"{each['sd']:.4f}",
            code_of(each),
        ]
        for each in found("bias")
    ]
    return table(heads, rows)


def coverage() -> str:
    """Return the table of coverage and width."""
    heads = ["collection", *(f"`{name}`: covered, width" for name in MEASURES), "decision"]
    rows = []
    for each in [*found("documents"), *found("rows")]:
        cells = [each["of"][name] for name in MEASURES]
        shown = [f"{c['covered']:.1%}, {c['width over oracle']:.2f}" for c in cells]
        rows.append([described(each["design"]), *shown, code_of(each)])
    return table(heads, rows)


def differences() -> str:
    """Return the table of coverage and width of differences."""
    heads = ["pairs of collections"]
    heads += [f"`{name}`: covered, width, over independent" for name in MEASURES]
    heads.append("decision")
    rows = []
    for each in found("differences"):
        cells = [each["of"][name] for name in MEASURES]
        shown = [
            f"{c['covered']:.1%}, {c['width over oracle']:.2f}, "
            f"{c['width over independent']:.2f}"
            for c in cells
        ]
        rows.append([described(each["design"]), *shown, code_of(each)])
    return table(heads, rows)


def speed(part: str) -> str:
    """Return one table of speed."""
    results = found("speed")
    if part not in results:
        return "Not run."
    heads = ["what", "seconds", "limit, seconds", "ratio (each)", "peak MiB", "value"]
    rows = [
        [
            each["name"],
            ", ".join(f"{x:.2f}" for x in each["seconds"]),
            ", ".join(f"{x:.2f}" for x in each["limit"]),
            f"{each['ratio']:.2f} ({', '.join(f'{x:.2f}' for x in each['ratios'])})",
            str(each.get("peak_mib", "–")),
            str(each.get("value", "–")),
        ]
        for each in results[part]["rows"]
    ]
    seen = results[part]["machine"]
    note = (
        f"{seen['processor']}, {seen['cores']} cores, NumPy {seen['numpy']}, Python "
        f"{seen['python']}; load averages when it began: "
        + ", ".join(f"{x:g}" for x in seen["load"])
    )
    return f"{table(heads, rows)}\n\nMachine: {note}."


def wait() -> str:
    """Return the table of whole commands beside the plain script."""
    heads = ["what", "plain, seconds", "isoscope, seconds", "ratio (each)", "peak MiB, plain"]
    rows = [
        [
            each["name"],
            spread_of(each["plain"]),
            spread_of(each["seconds"]),
            f"{each['ratio']:.2f} ({', '.join(f'{x:.2f}' for x in each['ratios'])})",
            f"{each['peak_mib']}, {each['plain_peak_mib']}",
        ]
        for part in SURVEYS
        for each in (found("wait") or {}).get(part, {}).get("rows", [])
        if "name" in each
    ]
    return f"{table(heads, rows)}\n\n{waited_on(SURVEYS)}" if rows else "Not run."


def fixed() -> str:
    """Return the table of what does not grow with the corpus."""
    heads = ["model", "width", "sites", "beyond the plain script, seconds of CPU", "aim"]
    aims = {384: 0.3, 640: 0.6}
    rows = [
        [
            each["fixed"],
            str(each["width"]),
            str(each["sites"]),
            f"{each['cpu']:.1f}",
            f"{3 + aims[each['width']] * each['sites']:.1f}",
        ]
        for part in SURVEYS
        for each in (found("wait") or {}).get(part, {}).get("rows", [])
        if "fixed" in each
    ]
    return table(heads, rows) if rows else "Not run."


def series() -> str:
    """Return the table of a trajectory beside the plain script."""
    results = found("trajectory")
    if not results:
        return "Not run."
    plain = results["rows"]["plain"]
    heads = ["way", "seconds", "ratio (each)", "seconds of CPU", "ratio of CPU", "peak MiB"]
    cpu, peak = _costs(plain)
    rows = [["plain script", spread_of(_column(plain, "seconds")), "", cpu, "", peak]]
    for way, runs in results["rows"].items():
        if way == "plain":
            continue
        pairs = list(zip(runs, plain, strict=True))
        ratios = [ours["seconds"] / theirs["seconds"] for ours, theirs in pairs]
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        cpu, peak = _costs(runs)
        used = median(ours["cpu"] / theirs["cpu"] for ours, theirs in pairs)
        seconds = spread_of(_column(runs, "seconds"))
        rows.append([way, seconds, f"{median(ratios):.2f} ({each})", cpu, f"{used:.2f}", peak])
    loads = ", ".join(f"{x:g}" for x in results["load"])
    note = f"Machine: {results['machine']}; load averages when it had ended: {loads}."
    return f"{table(heads, rows)}\n\n{note}"


def _column(runs: list[dict], name: str) -> list[float]:
    return [each[name] for each in runs]


def _costs(runs: list[dict]) -> tuple[str, str]:
    """Return processor time and the largest peak of some runs."""
    return spread_of(_column(runs, "cpu")), str(max(_column(runs, "peak_mib")))


def start_up() -> str:
    """Return the table of small commands."""
    heads = ["command", "seconds", "seconds of CPU", "`import numpy`, seconds"]
    rows = [
        [
            f"`{each['name']}`",
            spread_of(each["seconds"]),
            spread_of(each["cpu"]),
            spread_of(each["plain"]),
        ]
        for each in (found("wait") or {}).get("small", {}).get("rows", [])
    ]
    return f"{table(heads, rows)}\n\n{waited_on(['small'])}" if rows else "Not run."


def spread_of(numbers: list[float]) -> str:
    """Return the median with the range."""
    return f"{median(numbers):.2f} ({min(numbers):.2f} to {max(numbers):.2f})"


def waited_on(parts: list[str]) -> str:
    """Return on which machine some parts were run."""
    seen = [(found("wait") or {})[part] for part in parts if part in (found("wait") or {})]
    loads = "; ".join(", ".join(f"{x:g}" for x in each["load"]) for each in seen)
    return f"Machine: {seen[0]['machine']}; load averages when each part had ended: {loads}."


def room() -> str:
    """Return the table of peaks of memory."""
    heads = ["tokens", "plain passes, MiB", "survey, MiB", "plain and state, MiB"]
    keys = ("plain", "peak", "allowed")
    rows = [
        [f"{each['tokens']:,}", *(f"{each[key]:.0f}" for key in keys)]
        for each in (found("cost") or {}).get("memory", [])
    ]
    return table(heads, rows) if rows else "Not run."


def cost() -> str:
    """Return the table of what listening costs."""
    results = found("cost")
    if not results:
        return "Not run."
    heads = ["model", "what is kept", "tokens", "plain, seconds", "surveyed, seconds", "ratio"]
    rows = [
        [
            each["model"],
            each["what"],
            f"{each['tokens']:,}",
            ", ".join(f"{x:.2f}" for x in each["plain"]),
            ", ".join(f"{x:.2f}" for x in each["surveyed"]),
            f"{each['ratio']:.2f} ({', '.join(f'{x:.2f}' for x in each['ratios'])})",
        ]
        for each in results["rows"]
    ]
    seen = results["machine"]
    note = f"{seen['processor']}, {seen['threads']} threads, torch {seen['torch']}"
    return f"{table(heads, rows)}\n\nMachine: {note}."


def opening() -> str:
    """Return the table of how soon pages are drawn."""
    results = found("opening")
    if not results:
        return "Not run."
    heads = ["page", "readings", "MB", "first chart, milliseconds (each opening)"]
    rows = [
        [
            each["page"],
            f"{each['readings']:,}",
            f"{each['bytes'] / 1e6:.2f}",
            f"{each['median']:.0f} ({', '.join(map(str, each['milliseconds']))})",
        ]
        for each in results["rows"]
    ]
    seen = results["machine"]
    loads = ", ".join(f"{x:g}" for x in seen["load"])
    note = f"{seen['processor']}, {seen['cores']} cores, {seen['browser']}"
    return f"{table(heads, rows)}\n\nMachine: {note}; load averages when it began: {loads}."


PARTS = ("", " first", " last", " alone")
SHARES = (
    "sinks",
    "dimensions",
    *(cause + part for cause in ("frequency", "position") for part in PARTS),
    "mean",
)
CLOSE = 0.05  # a share that is no further from the truth is close
ROUNDED = 2e-5  # what is stored has five digits


def worlds(**wanted: object) -> list[dict]:
    """Return the planted worlds that are as wanted."""
    cells = [c for c in found("explain") if all(c[key] == v for key, v in wanted.items())]
    return [world for cell in cells for world in cell["worlds"]]


def told(of: list[dict], names: tuple[str, ...]) -> list[list[float]]:
    """Return truth, value and interval of shares by these names, where there is any doubt.

    Where there are no sinks, or no dimension is named, nothing can be wrong.
    """
    every = [
        each
        for world in of
        for name, each in (world["told"] or {}).items()
        if name in names or (name.startswith("band") and "bands" in names)
    ]
    return [each for each in every if any(each)]


def percent(right: list[bool]) -> str:
    """Return a share of worlds."""
    return f"{100 * sum(right) / len(right):.0f}" if right else "–"


def close(of: list[list[float]]) -> str:
    """Return how many shares are close to the truth, in per cent."""
    return percent([abs(value - truth) <= CLOSE for truth, value, *_ in of])


def covering(of: list[list[float]]) -> str:
    """Return how many intervals cover the truth, in per cent."""
    held = [
        low - ROUNDED <= truth <= high + ROUNDED for truth, _, low, high in of if low != high
    ]
    return percent(held)


def average(of: list[list[float]], at: int) -> str:
    """Return the mean of one column of what was told, in points."""
    values = [100 * each[at] for each in of]
    return f"{sum(values) / len(values) + 0.0:.1f}".replace("-0.0", "0.0") if values else "–"


def other_worlds() -> str:
    """Return the table of worlds that were written from the definitions alone."""
    cells = [cell for cell in found("explain") if cell["kind"] == "other"]
    if not cells:
        return "Not run."
    documents = sorted({cell["documents"] for cell in cells})
    heads = [
        "world",
        "frequency, position, mean: truth",
        "and what is read on average",
        "shares within 5 points, %",
        "shares covered, %",
        "contributions covered, %",
        "`falls to` covered, %",
    ]
    rows = []
    for name in dict.fromkeys(cell["what"] for cell in cells):
        sizes = [worlds(kind="other", what=name, documents=n) for n in documents]
        parts = [told(sizes[-1], (share,)) for share in ("frequency", "position", "mean")]
        both = [" · ".join(average(part, at) for part in parts) for at in (0, 1)]
        rows.append(
            [
                name,
                *both,
                " · ".join(close(told(size, SHARES)) for size in sizes),
                " · ".join(covering(told(size, SHARES)) for size in sizes),
                " · ".join(covering(told(size, ("bands",))) for size in sizes),
                " · ".join(covering(told(size, ("falls to",))) for size in sizes),
            ]
        )
    return table(heads, rows)


def own_worlds() -> str:
    """Return the table of single causes and mixtures, by width and documents."""
    cells = [cell for cell in found("explain") if cell["kind"] != "other"]
    kinds = list(dict.fromkeys((c["kind"], c["d"]) for c in cells))
    heads = ["worlds", "width", "shares within 5 points, %", "shares covered, %"]
    rows = []
    for kind, d in kinds:
        sizes = sorted({c["documents"] for c in cells if (c["kind"], c["d"]) == (kind, d)})
        every = [told(worlds(kind=kind, d=d, documents=n), SHARES) for n in sizes]
        texts = [" · ".join(how(each) for each in every) for how in (close, covering)]
        rows.append([kind, str(d), *texts])
    return table(heads, rows) if rows else "Not run."


def shares_covered() -> str:
    """Return the table of how often the intervals of each share hold the truth."""
    every = [world for world in worlds() if world["told"]]
    if not every:
        return "Not run."
    rows = []
    for name in SHARES:
        here = told(every, (name,))
        wide = sorted(high - low for *_, low, high in here if low != high)
        off = sorted(abs(value - truth) for truth, value, *_ in here)
        rows.append(
            [
                name,
                str(len(here)),
                covering(here),
                f"{100 * wide[len(wide) // 2]:.1f}",
                f"{100 * off[len(off) // 2]:.1f}",
                f"{100 * off[int(0.95 * len(off))]:.1f}",
            ]
        )
    heads = ["share", "worlds", "covered, %", "median width", "median error", "95 % of errors"]
    return table(heads, rows)


def against_code() -> str:
    """Return the table of penalties against the published code."""
    results = found("penalties")
    if "code" not in results:
        return "Not run."
    heads = ["rows", "IsoScore 2.0.1, ms", "isoscope, ms", "ratio (each)", "gradients apart"]
    rows = [
        [
            f"{each['rows']:,}",
            f"{1000 * median(each['published']):.1f}",
            f"{1000 * median(each['isoscope']):.1f}",
            f"{each['ratio']:.2f} ({', '.join(f'{x:.1f}' for x in each['ratios'])})",
            f"{each['gradient_apart']:.1e}",
        ]
        for each in results["code"]["rows"]
    ]
    return f"{table(heads, rows)}\n\n{run_on(results['code']['machine'])}"


def of_a_step() -> str:
    """Return the table of training steps with a penalty and without."""
    results = found("penalties")
    if "step" not in results:
        return "Not run."
    heads = [
        "penalty",
        "step without, ms",
        "step with, ms",
        "ratio",
        "middle half of the ratios",
    ]
    rows = []
    for each in results["step"]["rows"]:
        low, _, high = quantiles(each["ratios"], n=4)
        times = [f"{1000 * each[name]:.0f}" for name in ("plain", "step")]
        spread = f"{low:.3f} to {high:.3f}"
        rows.append([f"`{each['penalty']}`", *times, f"{each['ratio']:.3f}", spread])
    return f"{table(heads, rows)}\n\n{run_on(results['step']['machine'])}"


def run_on(seen: dict) -> str:
    """Return what a table was measured on."""
    return (
        f"Machine: {seen['processor']}, {seen['threads']} threads, {seen['clock']} time, torch "
        f"{seen['torch']}; load averages when it began: "
        + ", ".join(f"{x:g}" for x in seen["load"])
        + "."
    )


TABLES = {
    "statistics.md": {
        "bias": bias,
        "coverage": coverage,
        "differences": differences,
        "other-worlds": other_worlds,
        "own-worlds": own_worlds,
        "shares-covered": shares_covered,
        **INTERVALS,
    },
    "benchmarks.md": {
        **{
            name: lambda name=name: speed(name)
            for name in ("measure", "growth", "cosine", "twonn")
        },
        "wait": wait,
        "fixed": fixed,
        "start-up": start_up,
        "series": series,
        "listening": cost,
        "room": room,
        "opening": opening,
        "penalties": against_code,
        "step": of_a_step,
    },
    "control.md": CONTROL,
    "trajectory-statistics.md": CHANGES,
    "ablation.md": ABLATION,
    "nursery.md": NURSERY,
    "scale.md": SCALE,
}


def differing(write: bool) -> list[str]:
    """Return the pages that do not say what the results say; write them if asked."""
    wrong = []
    for page, tables in TABLES.items():
        path = DOCS / page
        old = path.read_text()
        new = fill_page(old, tables)
        if new != old:
            wrong.append(page)
            if write:
                path.write_text(new)
    return wrong


if __name__ == "__main__":
    changed = differing(write="--check" not in sys.argv)
    print("\n".join(changed))
    raise SystemExit(bool(changed) and "--check" in sys.argv)
