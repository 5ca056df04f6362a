"""Write the tables of docs/attention.md from bench/results, or check that they agree.

    python bench/heads_page.py           write the tables into the page
    python bench/heads_page.py --check   exit 1 where the page says something else

Readings come from `bench/heads.py`, also those of training, coverage from
`bench/heads_cover.py`, costs from `bench/attention.py`; a table whose results are not there
says so.
"""

import json
from collections import Counter
from math import comb
from pathlib import Path

import numpy as np
import polars as pl
from markdown_table import fill_page, table, write_or_check

from isoscope.lab.attention.order import find_orders
from isoscope.types import Reading

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "attention.md"
MODELS = {
    "minilm": "MiniLM",
    "minilm-untrained": "MiniLM, random weights",
    "rxnfp-pretrained": "rxnfp, pre-trained",
    "rxnfp-finetuned": "rxnfp, fine-tuned",
    "smollm": "SmolLM2-135M",
    "whisper": "Whisper tiny",
}
SERIES = {
    "series-nursery": "nursery: pre-norm, rotary positions, next tokens",
    "series-bert": "bert: post-norm, masked tokens",
}
STACKS = {"": "", "enc": ", encoder", "dec": ", decoder", "cross": ", cross-attention"}
EARLY = "before-rotation"
OF_SCORES = ("score-spread", "attention-entropy", "largest-probability", "first-token-mass")
BEFORE = {"": "", EARLY: ", before rotation"}
MEDIANS = (
    "query-cosine", "key-cosine", "query-first-share", "score-spread",
    "attention-entropy", "largest-probability", "first-token-mass", "sink-mass",
)  # fmt: skip
NOT_RUN = "Not run yet: `{command}`."


def heads(study, queries=""):
    """Return the readings of the heads of a study, with stack and layer; None if not read."""
    path = RESULTS / "heads" / f"{study}{queries and '-'}{queries}.parquet"
    if not path.exists():
        return None
    named = pl.col("site").str.extract_groups(r"^(?:(enc|dec|cross)\.)?head\.(\d+)\.(\d+)$")
    frame = pl.read_parquet(path).with_columns(named.alias("parts"))
    return frame.filter(pl.col("parts").struct.field("2").is_not_null()).with_columns(
        stack=pl.col("parts").struct.field("1").fill_null(""),
        layer=pl.col("parts").struct.field("2").cast(pl.Int64),
    )


def each_stack():
    """Yield the name, and the readings of one stack, of every model that was read."""
    for study, name in MODELS.items():
        frame = heads(study, "16")
        if frame is None:
            continue
        for stack, words in STACKS.items():
            here = frame.filter(pl.col("stack") == stack)
            if len(here):
                yield name + words, here


def of(frame, measure, group=""):
    """Return the readings of one measure."""
    return frame.filter((pl.col("measure") == measure) & (pl.col("group") == group))


def number(value):
    """Return a number for people to read."""
    return "–" if value is None else f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def counts(frame, group=""):
    """Return how many heads align, oppose, and do neither."""
    found = of(frame, "query-key-cosine", group)
    aligned = int((found["low"] > 0).sum())
    opposed = int((found["high"] < 0).sum())
    return aligned, opposed, len(found) - aligned - opposed


def models():
    """Return one line per model and stack; two where means differ before rotation."""
    rows = []
    for name, frame in each_stack():
        for group in groups(frame):
            aligned, opposed, neither = counts(frame, group)
            cosines = of(frame, "query-key-cosine", group)["value"]
            rows.append(
                [
                    name + BEFORE[group],
                    f"{of(frame, 'query-norm')['n'].max():,}",
                    str(len(cosines)),
                    *(str(each) for each in (aligned, opposed, neither)),
                    number(cosines.median()),
                    number(cosines.abs().median()),
                    number(half_interval(of(frame, "query-key-cosine", group))),
                    *(
                        "" if group else number(of(frame, measure)["value"].median())
                        for measure in MEDIANS
                    ),
                ]
            )
    columns = [
        "model", "tokens", "heads", "aligned", "opposed", "neither", "query-key-cosine",
        "its size", "half an interval of it", *MEDIANS,
    ]  # fmt: skip
    return table(columns, rows) if rows else NOT_RUN.format(command="python bench/heads.py")


def half_interval(frame):
    """Return the median over heads of half an interval."""
    return ((frame["high"] - frame["low"]) / 2).median()


def groups(frame):
    """Return the groups in which means are read."""
    return [g for g in BEFORE if len(of(frame, "query-key-cosine", g))]


def sample():
    """Return how far readings of 16 queries per document are from those of all."""
    rows = []
    for study, name in MODELS.items():
        few, every = heads(study, "16"), heads(study, "all")
        if few is None or every is None:
            continue
        for measure in OF_SCORES:
            both = of(few, measure).join(of(every, measure), on="site", suffix="_all")
            error = (both["value"] - both["value_all"]).to_numpy()
            inside = (both["low"] <= both["value_all"]) & (both["value_all"] <= both["high"])
            half = half_interval(both)
            rows.append(
                [
                    name,
                    measure,
                    number(float(np.abs(error).max())),
                    number(float(np.sqrt(np.mean(error**2)))),
                    number(half),
                    number(both["value_all"].std()),
                    f"{int(inside.sum())} of {len(both)}",
                ]
            )
    columns = [
        "model", "measure", "largest error of a head", "root mean square",
        "half an interval, median", "standard deviation over heads", "inside the interval",
    ]  # fmt: skip
    return table(columns, rows) if rows else NOT_RUN.format(command="python bench/heads.py")


def rank(values):
    """Return ranks, ties averaged."""
    values = np.asarray(values, dtype=float)
    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values))
    ranks[order] = np.arange(len(values))
    for value in np.unique(values):
        ranks[values == value] = ranks[values == value].mean()
    return ranks


def spearman(first, second):
    """Return the rank correlation of two lists."""
    return float(np.corrcoef(rank(first), rank(second))[0, 1])


def claim():
    """Return whether heads that drift are sharp: rank correlations over heads."""
    rows = []
    for name, frame in each_stack():
        spread, entropy, first = (
            of(frame, measure).sort("site")["value"].to_numpy()
            for measure in ("score-spread", "attention-entropy", "first-token-mass")
        )
        for group in groups(frame):
            dot = of(frame, "query-key-dot", group).sort("site")["value"].to_numpy()
            size = np.abs(dot)
            if len(size) != len(entropy) or len(size) < 8:
                continue
            rows.append(
                [
                    name + BEFORE[group],
                    str(len(size)),
                    number(float(np.median(size))),
                    f"{spearman(size, spread):+.2f}",
                    f"{spearman(size, entropy):+.2f}",
                    f"{spearman(dot, first):+.2f}",
                ]
            )
    columns = [
        "model", "heads", "median size of `query-key-dot`", "its size and `score-spread`",
        "its size and `attention-entropy`", "`query-key-dot` and `first-token-mass`",
    ]  # fmt: skip
    return table(columns, rows) if rows else NOT_RUN.format(command="python bench/heads.py")


def training():
    """Return one line per checkpoint of every series: how many heads align, and medians."""
    rows = []
    for study, name in SERIES.items():
        frame = heads(study)
        if frame is None:
            continue
        group = EARLY if len(of(frame, "query-key-cosine", EARLY)) else ""
        for step in frame["step"].unique().sort():
            here = frame.filter(pl.col("step") == step)
            aligned, opposed, _ = counts(here, group)
            medians = [
                of(here, measure, group)["value"].abs().median()
                for measure in ("query-key-cosine", "query-key-dot", "query-norm", "key-norm")
            ]
            medians += [of(here, measure)["value"].median() for measure in OF_SCORES]
            largest = of(here, "query-key-dot", group)["value"].abs().max()
            dot, entropy = (
                of(here, measure, where).sort("site")["value"].to_numpy()
                for measure, where in (("query-key-dot", group), ("attention-entropy", ""))
            )
            rows.append(
                [
                    name if step == 0 else "",
                    str(step),
                    *(f"{each} of {len(dot)}" for each in (aligned, opposed)),
                    *map(number, medians[:2]),
                    number(largest),
                    *map(number, medians[2:]),
                    f"{spearman(np.abs(dot), entropy):+.2f}",
                ]
            )
    columns = [
        "series", "step", "aligned", "opposed", "size of cosine", "size of dot",
        "largest dot", "query-norm", "key-norm", *OF_SCORES,
        "size of dot and entropy, rank correlation",
    ]  # fmt: skip
    return table(columns, rows) if rows else NOT_RUN.format(command="python bench/heads.py")


def order():
    """Return in how many heads drift comes before sharpness, for every series."""
    rows = []
    for study, name in SERIES.items():
        frame = heads(study)
        if frame is None:
            continue
        known = set(Reading.__dataclass_fields__)
        names = [each for each in frame.columns if each in known]
        readings = [Reading(**each) for each in frame.select(names).iter_rows(named=True)]
        found = find_orders(readings)
        count = Counter(each.drift_comes for each in found.heads)
        places = ("before", "together", "after")
        halves = [
            float(np.median([getattr(each, what) for each in found.heads]))
            for what in ("drift", "sharpness")
        ]
        rows.append(
            [
                name,
                str(len(found.heads) + found.others),
                str(len(found.heads)),
                *(str(count[place]) for place in places),
                share(count["before"], count["before"] + count["after"]),
                *(f"{half:.0f}" for half in halves),
            ]
        )
    columns = [
        "series", "heads", "that change in both", "drift first", "same checkpoint",
        "sharpness first", "drift first, of those that differ",
        "median step of half the drift", "and of half the sharpness",
    ]  # fmt: skip
    return table(columns, rows) if rows else NOT_RUN.format(command="python bench/heads.py")


def share(first, total):
    """Return a share in per cent with its exact 95 % interval (Clopper and Pearson)."""
    if not total:
        return "–"

    def chance(p, counts):
        return sum(comb(total, k) * p**k * (1 - p) ** (total - k) for k in counts)

    at_least, at_most = range(first, total + 1), range(first + 1)
    low = 0.0 if first == 0 else bisect(lambda p: chance(p, at_least) - 0.025)
    high = 1.0 if first == total else bisect(lambda p: 0.025 - chance(p, at_most))
    return f"{100 * first / total:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


def bisect(rising):
    """Return where a function that rises from 0 to 1 is zero."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return low


def cover():
    """Return how often intervals cover, by world."""
    path = RESULTS / "heads_cover.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    cells = {name: each for name, each in known.items() if "covered" in each}
    if not cells:
        return NOT_RUN.format(command="python bench/heads_cover.py")
    measures = list(dict.fromkeys(m for each in cells.values() for m in each["given"]))
    rows = [
        [f"{name} ({each['times']})", *(covered(each, measure) for measure in measures)]
        for name, each in cells.items()
    ]
    return table(["world", *measures], rows)


def covered(cell, measure):
    """Return the share of intervals that cover, and how many readings were warned of."""
    given, warned = cell["given"].get(measure, 0), cell["warned"].get(measure, 0)
    share = f"{100 * cell['covered'].get(measure, 0) / given:.0f} %" if given else "–"
    return share + (f" (warned {100 * warned / cell['times']:.0f} %)" if warned else "")


def cost():
    """Return what the command costs: whole, its passes, and memory by length."""
    path = RESULTS / "attention.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    rows = {name: part["rows"] for name, part in known.items()}
    tables = [
        _whole_commands([*rows.get("minilm", []), *rows.get("smollm", [])]),
        _passes(rows.get("passes", [])),
        _memory(rows.get("memory", [])),
    ]
    found = "\n\n".join(filter(None, tables))
    return found or NOT_RUN.format(command="python bench/attention.py")


def seconds(values):
    """Return seconds of several turns."""
    return ", ".join(f"{value:.1f}" for value in values)


def _whole_commands(rows):
    columns = [
        "process start to exit", "plain script, s", "isoscope attention, s", "ratio by turn",
        "median ratio", "ratio of processor time", "peak, plain and ours", "run folder",
    ]  # fmt: skip
    lines = [
        [
            each["name"].removeprefix("attention, "),
            seconds(each["plain"]),
            seconds(each["seconds"]),
            ", ".join(f"{ratio:.2f}" for ratio in each["ratios"]),
            f"**{each['ratio']:.2f}**",
            f"{each['cpu_ratio']:.2f}",
            f"{each['plain_peak_mib']:,} and {each['peak_mib']:,} MiB",
            f"{each['run_mb']} MB",
        ]
        for each in rows
    ]
    return table(columns, lines) if lines else ""


def _passes(rows):
    columns = ["passes alone, one process", "plain, s of processor", "read, s", "ratio"]
    lines = [
        [
            each["name"].removeprefix("passes, "),
            f"{each['plain_cpu']:.1f}",
            f"{each['cpu']:.1f}",
            f"**{each['cpu_ratio']:.2f}**",
        ]
        for each in rows
    ]
    return table(columns, lines) if lines else ""


def _memory(rows):
    columns = ["one document, all queries", "pass alone, peak MiB", "read, peak MiB"]
    lines = [
        [
            each["name"]
            .removeprefix("memory in MiB, one document of ")
            .removesuffix(", all queries")
            + " tokens",
            f"{each['plain']:,}",
            f"{each['heard']:,}",
        ]
        for each in rows
    ]
    return table(columns, lines) if lines else ""


TABLES = {
    "models": models,
    "sample": sample,
    "claim": claim,
    "training": training,
    "order": order,
    "cover": cover,
    "cost": cost,
}


def page(text):
    """Return the page with all of its tables."""
    return fill_page(text, TABLES)


if __name__ == "__main__":
    write_or_check(PAGE, page)
