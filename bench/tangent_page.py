"""Write the tables of docs/tangent.md from bench/results, or check that they agree.

    python bench/tangent_page.py           write the tables into the page
    python bench/tangent_page.py --check   exit 1 where the page says something else

Readings come from `bench/tangent_models.py`, costs from `bench/tangent.py`; a table whose
results are not there says so.
"""

import csv
import json
from pathlib import Path
from statistics import median

import polars as pl
from markdown_table import fill_page, table, write_or_check

from isoscope.accumulate import FREQUENCIES
from isoscope.site import Site

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[1] / "docs" / "tangent.md"
MODELS = {
    "decoder": "nursery decoder",
    "encoder": "nursery encoder",
    "smollm": "SmolLM2",
    "smollm-no-sink": "SmolLM2, proxy without sinks",
    "minilm": "MiniLM",
}
SERIES = ("decoder", "encoder")
ENERGY, RATIO, RISE = "tangent-energy", "tangent-energy-ratio", "tangent-anisotropy"
ANGLE, DISTANCE = "tangent-angle", "frequency-distance"
CONTROLS = ("complement", "random", "shuffled")
KINDS = {"grad": "the stream", "gradw": "weights"}
NOT_RUN = "Not run yet: `python bench/tangent_models.py`."


def readings(name):
    """Return the readings of a study with the family of their site; None if not read."""
    path = RESULTS / "tangent" / f"{name}.parquet"
    if not path.exists():
        return None
    frame = pl.read_parquet(path)
    family = pl.col("site").map_elements(lambda s: Site.parse(s).family, pl.String)
    return frame.with_columns(family=family)


def studies():
    """Yield the studies that were run: name, title and readings."""
    for name, title in MODELS.items():
        found = readings(name)
        if found is not None:
            yield name, title, found


def at_end(found):
    """Return the readings of the last step, or of the one model."""
    last = found["step"].max()
    return found if last is None else found.filter(pl.col("step") == last)


def one(found, site, measure, group=""):
    """Return a reading as a dictionary, or None."""
    here = found.filter(
        (pl.col("site") == site) & (pl.col("measure") == measure) & (pl.col("group") == group)
    )
    return here.row(0, named=True) if len(here) else None


def cell(reading, digits=3):
    """Return a value with its interval."""
    if reading is None:
        return "–"
    value = f"{reading['value']:.{digits}g}"
    if reading["low"] is None:
        return value
    return f"{value} [{reading['low']:.{digits}g}, {reading['high']:.{digits}g}]"


def sites_of(found):
    """Return the gradient sites in the order of their readings."""
    return found.filter(pl.col("measure") == ENERGY)["site"].unique(maintain_order=True)


def ends():
    """One line per site at the end of training, against all three controls."""
    heads = [
        "model", "site", "k / d", "energy", "/ complement", "/ random", "p", "/ shuffled",
        "rise - random", "rise - shuffled",
    ]  # fmt: skip
    rows = []
    for _, title, every in studies():
        found = at_end(every)
        for site in sites_of(found):
            energy = one(found, site, ENERGY)
            rank = energy["value"] / one(found, site, RATIO, "random")["value"]
            row = [title, f"`{site}`", f"{rank:.3f}", cell(energy)]
            row += [cell(one(found, site, RATIO, each)) for each in ("complement", "random")]
            row += [f"{one(found, site, f'{ENERGY}-p', 'random')['value']:.3g}"]
            row += [cell(one(found, site, RATIO, "shuffled"))]
            row += [cell(one(found, site, RISE, each)) for each in ("random", "shuffled")]
            rows.append(row)
    return table(heads, rows) if rows else NOT_RUN


def middle(found, measure, group=""):
    """Return the median over sites and steps, as text."""
    here = found.filter((pl.col("measure") == measure) & (pl.col("group") == group))["value"]
    return f"{here.median():.3g}" if len(here) else "–"


def verdicts(found, group="shuffled"):
    """Return how many ratios are above and below 1, their intervals included, and of how many.

    A ratio without an interval is neither.
    """
    here = found.filter((pl.col("measure") == RATIO) & (pl.col("group") == group))
    low, high = here["low"], here["high"]
    return int((low > 1).sum()), int((high < 1).sum()), len(here)


def steps(family):
    """One line per checkpoint: medians over the sites of a family."""
    heads = [
        "model", "step", "energy", "/ complement", "/ random", "/ shuffled",
        "above 1 against shuffled", "rise - random", "rise - shuffled", "angle",
    ]  # fmt: skip
    rows = []
    for name in SERIES:
        every = readings(name)
        if every is None:
            continue
        every = every.filter(pl.col("family") == family)
        for step in sorted(every["step"].unique()):
            here = every.filter(pl.col("step") == step)
            above, below, count = verdicts(here)
            angles = here.filter(pl.col("measure") == ANGLE)["value"]
            rows.append(
                [name, str(step), middle(here, ENERGY)]
                + [middle(here, RATIO, each) for each in CONTROLS]
                + [f"{above} of {count} ({below} below)"]
                + [middle(here, RISE, each) for each in ("random", "shuffled")]
                + [f"{angles.median():.0f}°" if len(angles) else "–"]
            )
    return table(heads, rows) if rows else NOT_RUN


def halves():
    """Early and late half of training by steps: medians over checkpoints and sites."""
    heads = [
        "model", "gradients of", "half of training", "energy", "/ complement", "/ random",
        "/ shuffled", "rise", "rise - complement", "rise - random", "rise - shuffled",
    ]  # fmt: skip
    rows = []
    for name in SERIES:
        every = readings(name)
        if every is None:
            continue
        last = every["step"].max()
        for family, words in KINDS.items():
            for half, chosen in (
                ("early", pl.col("step") <= last / 2),
                ("late", pl.col("step") > last / 2),
            ):
                here = every.filter((pl.col("family") == family) & chosen)
                count = here["step"].n_unique()
                rows.append(
                    [name, words, f"{half} ({count} checkpoints)", middle(here, ENERGY)]
                    + [middle(here, RATIO, each) for each in CONTROLS]
                    + [middle(here, RISE, each) for each in ("", *CONTROLS)]
                )
    return table(heads, rows) if rows else NOT_RUN


def bands(measure):
    """One line per site of the stream: the measure of every frequency band."""
    names = [each.removeprefix("frequency ") for each in FREQUENCIES]
    more = ["frequency-distance"] if measure == ENERGY else []
    rows = []
    for _, title, every in studies():
        found = at_end(every)
        for site in sites_of(found):
            cells = [one(found, site, measure, each) for each in FREQUENCIES]
            distance = one(found, site, DISTANCE)
            if distance is not None and any(cells):
                rows.append(
                    [title, f"`{site}`"]
                    + [cell(each, 2) for each in cells]
                    + [cell(distance, 2) for _ in more]
                )
    return table(["model", "site", *names, *more], rows) if rows else NOT_RUN


def band_halves():
    """The same by half of training: medians over checkpoints and layers."""
    names = [each.removeprefix("frequency ") for each in FREQUENCIES]
    rows = []
    for name in SERIES:
        every = readings(name)
        if every is None:
            continue
        last = every["step"].max()
        for measure, words in ((ENERGY, "energy"), (RISE, "rise")):
            for half, chosen in (
                ("early", pl.col("step") <= last / 2),
                ("late", pl.col("step") > last / 2),
            ):
                here = every.filter(chosen)
                cells = [middle(here, measure, each) for each in FREQUENCIES]
                rows.append([name, words, half, *cells])
    return table(["model", "of", "half of training", *names], rows) if rows else NOT_RUN


def facts():
    """What the tables say, counted."""
    found = list(studies())
    if not found:
        return NOT_RUN
    every = {name: at_end(each) for name, _, each in found if name != "smollm-no-sink"}
    lines = []
    for family, words in KINDS.items():
        parts = [each.filter(pl.col("family") == family) for each in every.values()]
        counts = {
            group: [
                sum(each) for each in zip(*(verdicts(p, group) for p in parts), strict=True)
            ]
            for group in CONTROLS
        }
        spans = [
            (group, sorted(v for p in parts for v in values(p, group))) for group in CONTROLS
        ]
        told = "; ".join(
            f"against `{group}` {counts[group][0]} above and {counts[group][1]} below 1 of "
            f"{counts[group][2]} ({span[0]:.3g} to {span[-1]:.3g}, median {median(span):.3g})"
            for group, span in spans
        )
        lines.append(
            f"- Gradients of {words} at the end of training, intervals included: {told}."
        )
    for name in SERIES:
        if name in every:
            series = readings(name)
            for family, words in KINDS.items():
                above, below, count = verdicts(series.filter(pl.col("family") == family))
                lines.append(
                    f"- {MODELS[name]}, {words}, all checkpoints, against `shuffled`: {above} "
                    f"above and {below} below 1 of {count} sites and steps."
                )
            lines.append(f"- {loss_of(name)}")
    return "\n".join(lines)


def values(found, group):
    """Return the energy ratios to a control."""
    here = found.filter((pl.col("measure") == RATIO) & (pl.col("group") == group))
    return here["value"].to_list()


def loss_of(name):
    """Return the losses of a series at its first and last checkpoint."""
    with (RESULTS / "tangent" / f"{name}-metrics.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    held = next(key for key in rows[0] if "held" in key)
    first, last = (float(rows[n][held]) for n in (0, -1))
    return f"The {MODELS[name]}'s held-out loss falls from {first:.2f} to {last:.2f} nats."


def costs():
    """Costs as `bench/tangent.py` measured them."""
    rows = [
        [
            each["name"],
            *(", ".join(f"{s:.1f}" for s in each[key]) for key in ("plain", "seconds")),
            ", ".join(f"{s:.2f}" for s in each.get("ratios", [each["ratio"]])),
        ]
        for each in json.loads((RESULTS / "tangent.json").read_text())["rows"]
    ]
    return table(["what", "plain, s", "isoscope, s", "ratio"], rows)


TABLES = {
    "facts": facts,
    "ends": ends,
    "steps": lambda: steps("grad"),
    "maps": lambda: steps("gradw"),
    "halves": halves,
    "bands": lambda: bands(ENERGY),
    "rise-bands": lambda: bands(RISE),
    "band-halves": band_halves,
    "costs": costs,
}


def page(text):
    """Return the page with all of its tables."""
    return fill_page(text, TABLES)


if __name__ == "__main__":
    write_or_check(PAGE, page)
