"""Write the tables of docs/real-models.md from bench/results/real, or check that they agree.

python bench/real_page.py           write the tables into the page
python bench/real_page.py --check   exit 1 where the page says something else
"""

import json
from html import escape
from pathlib import Path

from markdown_table import fill_page, write_or_check

from isoscope.display.number import format_value
from isoscope.store.readings import read_readings

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "real"
PAGE = ROOT / "docs" / "real-models.md"
COSINE, SCORE, RANK, TOP = (
    "mean-cosine-cross", "isoscore-debiased", "effective-rank-debiased", "top-share"
)  # fmt: skip


def readings(study):
    """Return the readings of a study by site, variant and measure."""
    path = RESULTS / study / "readings.parquet"
    found = read_readings(path) if path.exists() else []
    whole = [each for each in found if not each.group]
    return {(each.site, each.variant, each.measure): each for each in whole}


def cell(reading):
    """Return value and half of the interval."""
    if reading is None:
        return "–"
    value, interval = format_value(reading.value, reading.low, reading.high)
    if not interval:
        return value
    half = (reading.high - reading.low) / 2
    if "e" in value:
        return f"{value} ± {half:.1e}"
    return f"{value} ± {half:.{len(value.partition('.')[2])}f}"


def table(columns, sites=None):
    """Return a Markdown table: a line for each site of the first study, a column for each.

    Columns are (heading, study, variant, measure).
    """
    found = {study: readings(study) for _, study, _, _ in columns}
    first = found[columns[0][1]]
    names = dict.fromkeys(site for site, _, _ in first)
    lines = ["| site | " + " | ".join(column[0] for column in columns) + " |"]
    lines.append("|---|" + "---|" * len(columns))
    for site in names:
        if sites is None or sites(site):
            cells = [
                cell(found[study].get((site, variant, m))) for _, study, variant, m in columns
            ]
            lines.append(f"| `{site}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sinks():
    """Return what sinks do in SmolLM2: how many, and each measure with and without them."""
    found = readings("smollm")
    sites = [s for s in dict.fromkeys(site for site, _, _ in found) if not s.endswith("weight")]
    lines = [
        "| site | sinks | cosine, all | without | IsoScore, all | without | "
        "share of the first direction, all | without |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for site in sites:
        whole, without = (found[site, v, "mean-cosine"].n for v in ("all", "no-sink"))
        cells = [
            cell(found.get((site, variant, measure)))
            for measure in (COSINE, SCORE, TOP)
            for variant in ("all", "no-sink")
        ]
        lines.append(f"| `{site}` | {whole - without} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def twins(study, measures=(COSINE, SCORE, RANK), variant="all"):
    """Return a trained model beside the same with random weights."""
    short = {COSINE: "cosine", SCORE: "IsoScore", RANK: "effective rank"}
    columns = []
    for measure in measures:
        columns.append((short[measure], study, variant, measure))
        columns.append(
            (f"{short[measure]}, random weights", f"{study}-untrained", variant, measure)
        )
    return table(columns)


def finetuned():
    """Return the reaction BERT before and after it was fine-tuned."""
    columns = [
        (f"{title}, {when}", f"rxnfp-{study}", "all", measure)
        for title, measure in (
            ("cosine", COSINE),
            ("IsoScore", SCORE),
            ("effective rank", RANK),
        )
        for when, study in (("before", "pretrained"), ("after", "finetuned"))
    ]
    return table(columns)


def bos():
    """Return Gemma with and without the rows of its bos token."""
    columns = [
        (f"{title}, {rows}", "gemma", variant, measure)
        for title, measure in (
            ("cosine", COSINE),
            ("IsoScore", SCORE),
            ("effective rank", RANK),
        )
        for rows, variant in (("all", "all"), ("without bos", "no-special"))
    ]
    return table(columns, lambda site: not site.endswith("weight"))


def _code(token):
    """Return a token as code; a bar in it would end the cell of a table."""
    return f"<code>{escape(token).replace('|', '&#124;')}</code>"


def losses():
    """Return the loss of the language models, with and without bos before each document."""
    lines = [
        "| study | bos | tokens | with bos | without | surveyed |",
        "|---|---|---|---|---|---|",
    ]
    for path in sorted(RESULTS.glob("*/origin.json")):
        found = json.loads(path.read_text())["corpus"].get("loss")
        if found:
            how = "with" if found["used"] else "without"
            lines.append(
                f"| {path.parent.name} | {_code(found['bos'])} | {found['tokens']:,} | "
                f"{found['with_bos']:.2f} | {found['without_bos']:.2f} | {how} |"
            )
    return "\n".join(lines)


def origins():
    """Return what each study ran over what."""
    lines = [
        "| study | model | parameters | corpus | documents | tokens |",
        "|---|---|---|---|---|---|",
    ]
    for path in sorted(RESULTS.glob("*/origin.json")):
        found = json.loads(path.read_text())
        model, corpus = found["model"], found["corpus"]
        lines.append(
            f"| {path.parent.name} | {model['architecture']}, sha256 {model['sha'][:12]}… | "
            f"{model['parameters']:,} | {corpus['file']} | {corpus['documents']:,} | "
            f"{corpus['rows']:,} |"
        )
    return "\n".join(lines)


TABLES = {
    "origins": origins,
    "minilm": lambda: twins("minilm"),
    "sinks": sinks,
    "smollm": lambda: twins("smollm", variant="no-sink"),
    "losses": losses,
    "gemma": bos,
    "rxnfp": finetuned,
    "rxnfp-random": lambda: twins("rxnfp-pretrained"),
    "rxnmapper": lambda: twins("rxnmapper"),
    "whisper": lambda: twins("whisper"),
}


def page(text):
    """Return the page with all of its tables."""
    return fill_page(text, TABLES)


if __name__ == "__main__":
    write_or_check(PAGE, page)
