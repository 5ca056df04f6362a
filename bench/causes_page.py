"""Write the tables of docs/causes.md from bench/results/real, or check that they agree.

python bench/causes_page.py           write the tables into the page
python bench/causes_page.py --check   exit 1 where the page says something else
"""

import json

from markdown_table import fill_page, write_or_check
from real_page import RESULTS, ROOT, cell, readings

PAGE = ROOT / "docs" / "causes.md"
MODELS = ("minilm", "smollm", "rxnfp-pretrained", "rxnfp-finetuned", "rxnmapper", "whisper")
OLD = "Not surveyed since causes have two scales: `python bench/real.py` does it."


def found(study):
    """Return what explains a study."""
    path = RESULTS / study / "causes.json"
    return json.loads(path.read_text()) if path.exists() else {}


def table(heads, rows):
    """Return a Markdown table."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def percent(share):
    """Return a share as people read it."""
    return "" if share is None else f"{100 * share:.0f} %".replace("-0 %", "0 %")


def by_site(study, scale):
    """Return the causes of every site of a study on one scale."""
    sites = {}
    for each in found(study).get("causes", ()):
        if each.get("scale") == scale:
            sites.setdefault(each["site"], {})[each["cause"]] = each
    return sites


def with_interval(cause):
    """Return a share with its interval, in per cent."""
    if cause is None:
        return ""
    ends = (
        "" if cause["low"] is None else f" [{percent(cause['low'])}, {percent(cause['high'])}]"
    )
    return percent(cause["share"]) + ends.replace(" %", "")


def removed(study):
    """Return what sinks and dimensions have of the mean cosine of every site."""
    rows = []
    for site, here in by_site(study, "removal").items():
        rogue = here.get("dimensions")
        falls = None if rogue is None else rogue["falls_to"]
        named = [] if rogue is None else rogue["named"]
        rows.append(
            [
                f"`{site}`",
                f"{next(iter(here.values()))['mean_cosine']:.3f}",
                with_interval(here.get("sinks")),
                with_interval(rogue),
                "" if falls is None else f"{falls:.3f}",
                ", ".join(f"{one['dimension']}" for one in named),
            ]
        )
    heads = ["site", "mean cosine", "sinks", "dimensions", "zeroed, falls to", "the largest"]
    return table(heads, rows) if rows else OLD


def depending(study):
    """Return what depends on frequency and position at every site, first and last beside it."""
    rows = []
    for site, here in by_site(study, "dependence").items():
        cells = []
        for name in ("frequency", "position"):
            cause = here.get(name)
            cells.append(with_interval(cause))
            ends = () if cause is None else (cause["first"], cause["last"])
            cells.append(", ".join(map(percent, ends)))
        whole = next(iter(here.values()))["whole"]
        rows.append([f"`{site}`", f"{whole:.3f}", *cells, with_interval(here["mean"])])
    heads = [
        "site",
        "mean cosine of like rows",
        "frequency",
        "first, last",
        "position",
        "first, last",
        "mean",
    ]
    return table(heads, rows) if rows else OLD


def shape(study):
    """Return what Ethayarajh looked at, layer by layer."""
    seen = readings(study)
    columns = {
        "baseline": "mean-cosine",
        "self-similarity, adjusted": "self-similarity-adjusted",
        "sentence-similarity, adjusted": "sentence-similarity-adjusted",
        "MEV, adjusted": "mev-adjusted",
    }
    names = [
        site
        for site in dict.fromkeys(site for site, _, _ in seen)
        if site.rpartition(".")[0] in ("resid", "enc.resid", "dec.resid")
        or site.endswith(("embed", "norm.out"))
    ]
    rows = [
        [f"`{site}`", *(cell(seen.get((site, "all", name))) for name in columns.values())]
        for site in names
    ]
    return table(["site", *columns], rows)


def norms():
    """Return the final norms: gain, bias, the reference, and the readings around them."""
    heads = ["model", "norm", "gain", "bias", "r", "r²/(1+r²)", "before", "between", "after"]
    rows = []
    for study in MODELS:
        seen, here = found(study), readings(study)
        for each in seen.get("norms", ()):
            around = [
                cell(here.get((f"{each['site']}.{place}", "all", "mean-cosine")))
                for place in ("in", "mid", "out")
            ]
            bias, ratio, reference = each["bias_norm"], each["ratio"], each["reference"]
            rows.append(
                [
                    f"{study} {each['site'].removesuffix('norm').strip('.')}".strip(),
                    each["kind"],
                    f"{each['gain_norm']:.2f}",
                    "none" if bias is None else f"{bias:.2f}",
                    "–" if ratio is None else f"{ratio:.3f}",
                    "–" if reference is None else f"{reference:.4f}",
                    *around,
                ]
            )
    return table(heads, rows)


def steps():
    """Return what gain and bias do to the mean cosine of a sample, one after the other."""
    keys = {
        "normalised": "normalised",
        "and gain": "gain",
        "and bias": "gain_and_bias",
        "the same, of centred rows": "centred_gain_and_bias",
    }
    rows = []
    for study in MODELS:
        for each in found(study).get("steps", ()):
            if each["variant"] != "all":
                continue
            reference = each["reference"]
            rows.append(
                [
                    f"{study} {each['site'].removesuffix('norm').strip('.')}".strip(),
                    *(f"{each['gained'][key]:.3f}" for key in keys.values()),
                    "–" if reference is None else f"{reference:.3f}",
                ]
            )
    return table(["model", *keys, "r²/(1+r²)"], rows)


def matrices():
    """Return I(W) of the embedding matrices."""
    heads = ["model", "matrix", "raw", "raw, as published", "centred", "tied"]
    rows = []
    for study in MODELS:
        seen = found(study).get("matrices", {})
        by_site = {}
        for each in seen.get("matrices", ()):
            by_site.setdefault(each["site"], {})[each["centred"]] = each
        for site, both in by_site.items():
            raw, centred = both[False], both[True]
            rows.append(
                [
                    study, f"`{site}`", f"{raw['value']:.3f}", f"{raw['as_published']:.3f}",
                    f"{centred['value']:.3f}", "yes" if seen["tied"] else "no",
                ]
            )  # fmt: skip
    return table(heads, rows)


def dimensions():
    """Return the dimensions that carry most of the mean cosine, and what is left without."""
    heads = ["model", "site", "mean cosine", "largest shares", "r² without 1, 3, 5"]
    rows = []
    for study in MODELS:
        seen = found(study).get("dimensions", ())
        best = sorted(seen, key=lambda each: -(each["top"][0]["share"] or 0))[:3]
        for each in best:
            shares = ", ".join(
                f"{one['index']}: {percent(one['share'])}" for one in each["top"]
            )
            kept = [each["r_squared"].get(str(k), each["r_squared"].get(k)) for k in (1, 3, 5)]
            rows.append(
                [
                    study, f"`{each['site']}`", f"{each['mean_cosine']:.3f}", shares,
                    ", ".join("–" if k is None else f"{k:.2f}" for k in kept),
                ]
            )  # fmt: skip
    return table(heads, rows)


def zeroed():
    """Return how far SmolLM2's output moves when one dimension of its final norm is zeroed."""
    seen = found("smollm").get("zeroed", {})
    rows = [
        [
            str(each["index"]), each["chosen"], percent(each["share"]),
            f"{each['kl']:.4f} [{each['low']:.4f}, {each['high']:.4f}]"
            if each["low"] is not None else f"{each['kl']:.4f}",
        ]
        for each in seen.get("dimensions", ())
    ]  # fmt: skip
    return table(["dimension", "chosen", "share of the mean cosine", "KL, nats a token"], rows)


TABLES = {
    **{f"removed-{name}": lambda name=name: removed(name) for name in MODELS},
    **{f"depending-{name}": lambda name=name: depending(name) for name in MODELS},
    **{
        f"shape-{name}": lambda name=name: shape(name)
        for name in ("minilm", "smollm", "rxnfp-pretrained", "whisper")
    },
    "norms": norms,
    "steps": steps,
    "matrices": matrices,
    "dimensions": dimensions,
    "zeroed": zeroed,
}


def page(text):
    """Return the page with all of its tables."""
    return fill_page(text, TABLES)


if __name__ == "__main__":
    write_or_check(PAGE, page)
