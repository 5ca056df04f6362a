"""The tables of docs/ablation.md and nursery.md, from bench/results."""

import json
from functools import cache
from math import tanh
from pathlib import Path
from statistics import fmean

from markdown_table import table

RESULTS = Path(__file__).parent / "results" / "ablation.json"
SURE = 0.05
NOT_RUN = "Not run: `python bench/ablation.py {name}`."
COSINE, ISOSCORE, EXCESS = "mean-cosine", "isoscore", "excess-loss"
TITLES = {COSINE: "mean cosine (z)", ISOSCORE: "IsoScore", EXCESS: "loss above entropy (nats)"}
PLACES = {"norm.out": "output", "model": ""}
# Who suspects which factor, and what it should do to the cosine.
SUSPICIONS = (
    ("Machina and Mercer", "untied matrices keep the output isotropic: tying raises its cosine",
     "tie", "output"),
    ("Godey and others", "self-attention makes intermediate layers anisotropic", "attention",
     "middle"),
    ("Godey and others", "self-attention makes the output anisotropic", "attention", "output"),
    ("Gao and others; Biś and others",
     "cross-entropy on a long-tailed vocabulary makes the output anisotropic", "frequency",
     "output"),
    ("Gao and others; Biś and others", "the same in intermediate layers", "frequency",
     "middle"),
)  # fmt: skip


@cache
def results() -> dict:
    """Return all experiments that were run."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else {}


def outcomes(found: dict) -> list[tuple[str, str, str]]:
    """Return measures, sites and variants, in their order."""
    return list(
        dict.fromkeys((e["measure"], e["site"], e["variant"]) for e in found["effects"])
    )


def title(found: dict, outcome: tuple[str, str, str]) -> str:
    """Return the head of a column."""
    measure, site, variant = outcome
    where = PLACES.get(site, "middle" if site == found["middle"] else site)
    rows = " without sinks" if variant == "no-sink" else ""
    return ", ".join(part for part in (TITLES[measure] + rows, where) if part)


def is_sure(effect: dict) -> bool:
    """Whether an effect is there after Holm's correction."""
    return effect["p_corrected"] is not None and effect["p_corrected"] < SURE


def shown(effect: dict) -> str:
    """Return an effect with its interval, bold where it is sure, with a star where marked."""
    text = f"{effect['value']:+.3f}"
    if is_sure(effect):
        text = f"**{text}**"
    if effect["low"] is not None:
        text += f" [{effect['low']:+.3f}, {effect['high']:+.3f}]"
    return text + (" \\*" if effect["marks"] else "")


def effect_of(found: dict, factor: str, outcome: tuple[str, str, str]) -> dict:
    """Return one effect."""
    return next(
        e
        for e in found["effects"]
        if e["factor"] == factor and (e["measure"], e["site"], e["variant"]) == outcome
    )


def effects(pairs: bool) -> str:
    """Return main effects, or interactions: a line per factor or pair, a column per outcome."""
    found = results().get("preset")
    if found is None:
        return NOT_RUN.format(name="preset")
    columns = outcomes(found)
    names = dict.fromkeys(
        e["factor"] for e in found["effects"] if (":" in e["factor"]) == pairs
    )
    rows = []
    for name in names:
        every = [effect_of(found, name, outcome) for outcome in columns]
        rows.append([f"`{name}`, {every[0]['change']}", *map(shown, every)])
    heads = ["pair" if pairs else "factor", *(title(found, each) for each in columns)]
    return table(heads, rows)


def chance(p: float) -> str:
    """Return a p-value."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def level_mean(found: dict, factor: str, level: str, outcome: tuple[str, str, str]) -> float:
    """Return the mean cosine of all trainings with one level: of Fisher's z, turned back."""
    at = [name for name, _ in found["factors"]].index(factor)
    key = " ".join(outcome)
    values = [
        e["values"][key]
        for e in found["records"]
        if e["levels"][at] == level and e["values"].get(key) is not None
    ]
    return tanh(fmean(values))


def verdicts() -> str:
    """Return what is left of each suspicion at this scale."""
    found = results().get("preset")
    if found is None:
        return NOT_RUN.format(name="preset")
    rows = []
    for who, what, factor, where in SUSPICIONS:
        outcome = (COSINE, "norm.out" if where == "output" else found["middle"], "all")
        effect = effect_of(found, factor, outcome)
        levels = dict(found["factors"])[factor]
        cosines = " to ".join(f"{level_mean(found, factor, e, outcome):.3f}" for e in levels)
        rows.append([who, what, shown(effect), cosines, chance(effect["p_corrected"]),
                     verdict(effect, largest(found, outcome))])  # fmt: skip
    heads = ["who", "suspicion", "effect (Fisher's z)", "mean cosine", "p (Holm)", "here"]
    return table(heads, rows)


def largest(found: dict, outcome: tuple[str, str, str]) -> float:
    """Return the size of the largest main effect on an outcome."""
    every = (e for e in found["effects"] if ":" not in e["factor"])
    return max(
        abs(e["value"]) for e in every if (e["measure"], e["site"], e["variant"]) == outcome
    )


def verdict(effect: dict, most: float) -> str:
    """Return whether an effect is there, has the suspected sign, and is not a small one."""
    if not is_sure(effect):
        return "not supported"
    size = "" if abs(effect["value"]) == most else f", {abs(effect['value']) / most:.0%} of the"
    size += " largest effect" if size else ""
    return ("supported" if effect["value"] > 0 else "the opposite") + (
        size or ", the largest effect"
    )


def cells() -> str:
    """Return the means of every cell of the preset."""
    found = results().get("preset")
    if found is None:
        return NOT_RUN.format(name="preset")
    columns = outcomes(found)
    names = [name for name, _ in found["factors"]]
    heads = [*names, "parameters", "outside embeddings", "below unigram entropy (nats)",
             *(title(found, each).replace(" (z)", "") for each in columns)]  # fmt: skip
    return table(heads, [_cell(found, each, columns) for each in _grouped(found)])


def _grouped(found: dict) -> list[list[dict]]:
    groups: dict[tuple[str, ...], list[dict]] = {}
    for each in found["records"]:
        groups.setdefault(tuple(each["levels"]), []).append(each)
    return list(groups.values())


def _cell(found: dict, seeds: list[dict], columns: list[tuple[str, str, str]]) -> list[str]:
    counts = [f"{seeds[0][key]:,}" for key in ("parameters", "inner_parameters")]
    whole = [each for each in seeds if not each["diverged"]]
    if not whole:
        return [*seeds[0]["levels"], *counts, "diverged", *("" for _ in columns)]
    below = fmean(each["unigram_entropy"] - each["held_out_loss"] for each in whole)
    untrained = " (untrained)" if list(seeds[0]["levels"]) in found["untrained"] else ""
    numbers = [_mean(whole, outcome) for outcome in columns]
    return [*seeds[0]["levels"], *counts, f"{below:.2f}{untrained}", *numbers]


def _mean(seeds: list[dict], outcome: tuple[str, str, str]) -> str:
    """Return the mean over seeds, and between which values they lie."""
    values = [each["values"][" ".join(outcome)] for each in seeds]
    if outcome[0] == COSINE:
        values = [tanh(value) for value in values]
    return f"{fmean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def ladder() -> str:
    """Return the widths of the ladder, and the slopes per doubling under them."""
    found = results().get("ladder")
    if found is None:
        return NOT_RUN.format(name="ladder")
    columns = outcomes(found)
    heads = ["width", "parameters", "outside embeddings", "below unigram entropy (nats)",
             *(title(found, each).replace(" (z)", "") for each in columns)]  # fmt: skip
    rows = [_cell(found, each, columns) for each in _grouped(found)]
    slopes = [effect_of(found, "width", outcome) for outcome in columns]
    rows.append(["per doubling (cosine: z)", "", "", "", *map(shown, slopes)])
    rows.append(["p (Holm)", "", "", "", *(chance(e["p_corrected"]) for e in slopes)])
    return table(heads, rows)


def courses() -> str:
    """Return the mean cosine before the first step, at its highest and after the last."""
    found = results().get("preset")
    if found is None:
        return NOT_RUN.format(name="preset")
    names = [name for name, _ in found["factors"]]
    kept = [names.index(name) for name in ("norm", "attention", "frequency")]
    places = (
        ("output", f"{COSINE} norm.out all"),
        ("middle", f"{COSINE} {found['middle']} all"),
    )
    heads = ["norm", "mixer", "word frequencies"]
    heads += [f"{place}, {when}" for place, _ in places for when in ("step 0", "peak", "last")]
    groups: dict[tuple[str, ...], list[dict]] = {}
    for each in found["records"]:
        if not each["diverged"]:
            groups.setdefault(tuple(each["levels"][at] for at in kept), []).append(each)
    rows = [
        [*levels, *(cell for _, key in places for cell in _course(here, key))]
        for levels, here in groups.items()
    ]
    return table(heads, rows)


def _course(records: list[dict], key: str) -> list[str]:
    """Return the mean over records at the first step, the highest one, and at the last."""
    steps = [step for step, _ in records[0]["curves"][key]]
    means = [fmean(e["curves"][key][at][1] for e in records) for at in range(len(steps))]
    peak = max(range(len(steps)), key=means.__getitem__)
    return [f"{means[0]:.3f}", f"{means[peak]:.3f} (step {steps[peak]})", f"{means[-1]:.3f}"]


def modalities() -> str:
    """Return cosines before and after training of models of words, bytes and images."""
    found = results().get("modalities")
    if found is None:
        return NOT_RUN.format(name="modalities")
    heads = ["trained on", "held-out loss below the entropy (nats)", "site",
             "mean cosine at step 0", "at the last step", "IsoScore at step 0",
             "at the last step"]  # fmt: skip
    rows = []
    for name, seen in found.items():
        below = f"{seen['unigram_entropy'] - seen['held_out_loss']:.2f}"
        sites = [key.split()[1] for key in seen["curves"] if key.startswith(COSINE)]
        sites = [site for site in sites if not site.endswith(".weight")]
        for number, site in enumerate(sites):
            ends = [
                _with_interval(seen["curves"][f"{measure} {site}"][at])
                for measure in (COSINE, ISOSCORE)
                for at in (0, -1)
            ]
            rows.append([*((name, below) if not number else ("", "")), f"`{site}`", *ends])
    commands = "\n".join(f"{seen['command']}" for seen in found.values())
    return f"```text\n{commands}\n```\n\n{table(heads, rows)}"


def _with_interval(point: list) -> str:
    _, value, low, high = point
    return f"{value:.3f}" if low is None else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def facts(name: str) -> str:
    """Return how an experiment was run, and what was said of it."""
    found = results().get(name)
    if found is None:
        return NOT_RUN.format(name=name)
    options, records = found["options"], found["records"]
    seeds = sorted({each["seed"] for each in records})
    size = f"width {options['width']}, " if name != "ladder" else ""
    lines = [
        f"`{found['command']}`",
        f"{len(records)} trainings: {len(_grouped(found))} cells from seeds "
        f"{', '.join(map(str, seeds))}; {options['layers']} blocks, {size}"
        f"{options['vocabulary']} words, {options['steps']} steps of {options['batch']} texts "
        f"of {options['length']} words, learning rate {options['learning_rate']:g}; "
        f"{options['tokens']:,} held-out words measured at every checkpoint; torch "
        f"{found['machine']['torch']}, one thread",
        *found["remarks"],
    ]
    return "\n".join(f"- {line}" for line in lines)


def summary() -> str:
    """Return how many effects are sure."""
    found = results().get("preset")
    if found is None:
        return NOT_RUN.format(name="preset")
    every = found["effects"]
    single = [e for e in every if ":" not in e["factor"]]
    pairs = [e for e in every if ":" in e["factor"]]
    return (
        f"{sum(map(is_sure, single))} of {len(single)} main effects and "
        f"{sum(map(is_sure, pairs))} of {len(pairs)} interactions are sure after Holm's "
        f"correction over all {len(every)} (bold)."
    )


def cost() -> str:
    """Return what the default training and two cells of the preset take."""
    path = RESULTS.with_name("nursery.json")
    if not path.exists():
        return "Not run: `python bench/nursery.py`."
    seen = json.loads(path.read_text())
    machine = seen["machine"]
    below = seen["unigram_entropy"] - seen["held_out_loss"]
    plain = " and ".join(f"{each:,}" for each in seen["plain_tokens_per_second"])
    cells = ", ".join(
        f"{seconds:.0f} s with {mixer}" for mixer, seconds in seen["cells"].items()
    )
    rows = [
        [f"`{seen['command']}`, {seen['parameters']:,} parameters, {seen['steps']} steps, from "
         "process start to exit", f"{seen['seconds']:.0f} s"],
        ["held-out loss; unigram entropy; below it", f"{seen['held_out_loss']:.3f}; "
         f"{seen['unigram_entropy']:.3f}; {below:.3f} nats"],
        ["tokens per second of the whole training, with checkpoints and held-out losses",
         f"{seen['tokens_per_second']:,.0f}"],
        ["tokens per second of a plain PyTorch loop, before and after it", plain],
        ["mean of the two over the training's", f"{seen['ratio']:.2f}"],
        ["a cell of the preset of `nursery ablate`, with its trajectory", cells],
    ]  # fmt: skip
    loads = ", ".join(f"{each:g}" for each in machine["load"])
    note = f"Machine: {machine['threads']} threads, torch {machine['torch']}; load averages"
    return f"{table(['what', 'measured'], rows)}\n\n{note} when it began: {loads}."


NURSERY = {"cost": cost}
TABLES = {
    "verdicts": verdicts,
    "preset": lambda: facts("preset"),
    "summary": summary,
    "effects": lambda: effects(pairs=False),
    "interactions": lambda: effects(pairs=True),
    "courses": courses,
    "cells": cells,
    "ladder-facts": lambda: facts("ladder"),
    "ladder": ladder,
    "modalities": modalities,
}
