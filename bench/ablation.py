"""Run the ablations of docs/ablation.md, and save what they found.

    python bench/ablation.py            all of it, half an hour of one core
    python bench/ablation.py ladder     one part: preset, ladder or modalities

Runs go to bench/runs, where a run that was stopped is resumed and one that is whole is only
read; what was found goes to bench/results/ablation.json, and the figures to docs/images.
`python bench/pages.py` then writes the tables of the page.
"""

import json
import platform
import sys
from pathlib import Path

import msgspec
import torch

import isoscope as iso
from isoscope.lab.nursery.ablation import Ablation, CellRecord, ablation_of, effects_of
from isoscope.lab.nursery.results import HELD_OUT, SITE
from isoscope.store.run import load
from isoscope.store.schema import MANIFEST

ROOT = Path(__file__).parent
RUNS = ROOT / "runs"
RESULTS = ROOT / "results" / "ablation.json"
IMAGES = ROOT.parent / "docs" / "images"
OPTIONS = {
    "preset": {"factors": "tie,norm,attention,frequency", "seeds": 3, "threads": 1},
    "ladder": {"factors": "width", "seeds": 3, "threads": 1},
}
FIGURES = {
    "preset": ("mean-cosine@norm.out", "mean-cosine@resid.1"),
    "ladder": ("mean-cosine@norm.out",),
}
PERMUTATIONS = 1000
SMALL = {"width": 64, "steps": 300, "checkpoints": 8, "threads": 1}
MODALITIES = {
    "words": {"vocabulary": 2048},
    "bytes": {"tokenizer": "bytes"},
    "images": {"arch": "vit"},
}
SITES = ("embed", "resid.0", "resid.1", "resid.2", "resid.3", "norm.out")


def folder_of(name: str) -> Path:
    """Return where the run of an experiment is."""
    return RUNS / f"ablation-{name}"


def command_of(name: str) -> str:
    """Return the command that gives the same."""
    flags = " ".join(f"--{key} {value}" for key, value in OPTIONS[name].items())
    return f"isoscope nursery ablate {flags} -o runs/{name}"


def rounded(value: float | None) -> float | None:
    """Return a number with the digits that are worth keeping."""
    return None if value is None else float(f"{value:.6g}")


def record_of(found: Ablation, record: CellRecord) -> dict:
    """Return one cell from one seed: its last values, and its curves."""
    outcomes = found.outcomes()
    curves = {
        " ".join(outcome): record.curve(*outcome) for outcome in outcomes if outcome[1] != SITE
    }
    curves[f"{HELD_OUT} {SITE} all"] = record.curve(HELD_OUT, SITE, "all")
    return {
        "levels": record.levels,
        "seed": record.seed,
        "parameters": record.parameters,
        "inner_parameters": record.inner_parameters,
        "unigram_entropy": rounded(record.unigram_entropy),
        "floor": rounded(record.floor),
        "held_out_loss": rounded(record.held_out_loss),
        "diverged": record.diverged,
        "seconds": round(record.seconds, 1),
        "values": {" ".join(outcome): rounded(record.outcome(outcome)) for outcome in outcomes},
        "curves": {
            key: [[step, rounded(value)] for step, value in points]
            for key, points in curves.items()
            if points
        },
    }


def collect(name: str) -> dict:
    """Return what an experiment found, from its run folder."""
    run = load(folder_of(name))
    found = msgspec.structs.replace(ablation_of(run), permutations=PERMUTATIONS)
    results = effects_of(found)
    settings = run.settings.rest
    return {
        "command": command_of(name),
        "options": {
            key: settings[key]
            for key in ("layers", "width", "vocabulary", "steps", "batch", "length",
                        "learning_rate", "checkpoints", "tokens")
        },
        "factors": found.factors,
        "middle": found.middle,
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "remarks": list(results.remarks),
        "untrained": found.untrained(),
        "effects": [json.loads(line) for line in results.to_json().splitlines()],
        "records": [record_of(found, each) for each in found.records],
    }  # fmt: skip


def modality(name: str) -> dict:
    """Train one model on words, bytes or images, and return its trajectory."""
    folder, series = RUNS / f"modality-{name}", RUNS / f"modality-{name}-series"
    options = {**MODALITIES[name], **SMALL}
    if not (folder / MANIFEST).is_file():
        iso.nursery_train(**options, output=folder)
    if not (series / MANIFEST).is_file():
        held_out = next(each for each in folder.glob("held_out*"))
        iso.trajectory(
            folder,
            held_out,
            sites=SITES,
            measures=["mean-cosine", "isoscore"],
            tokens=4096,
            no_theories=True,
            threads=1,
            output=series,
        )
    trained = load(folder)
    readings = [e for e in load(series).readings if e.variant == "all" and not e.group]
    curves: dict[str, list] = {}
    for each in readings:
        point = [each.step, *map(rounded, (each.value, each.low, each.high))]
        curves.setdefault(f"{each.measure} {each.site}", []).append(point)
    flags = " ".join(f"--{key} {value}" for key, value in options.items())
    return {
        "command": f"isoscope nursery train {flags} -o runs/{name}",
        "unigram_entropy": rounded(trained.settings.rest["unigram_entropy"]),
        "held_out_loss": rounded(
            max((e.step, e.value) for e in trained.readings if e.measure == HELD_OUT)[1]
        ),
        "curves": {key: sorted(points) for key, points in curves.items()},
    }


def main() -> None:
    saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in sys.argv[1:] or [*OPTIONS, "modalities"]:
        if name == "modalities":
            saved[name] = {each: modality(each) for each in MODALITIES}
            RESULTS.write_text(json.dumps(saved, indent=1) + "\n")
            continue
        folder = folder_of(name)
        if not (folder / MANIFEST).is_file():
            iso.nursery_ablate(**OPTIONS[name], output=folder, say=print)
        saved[name] = collect(name)
        RESULTS.write_text(json.dumps(saved, indent=1) + "\n")
        for measure in FIGURES[name]:
            target = IMAGES / f"ablation-{name}-{measure.replace('@', '-')}.svg"
            iso.figure(
                [folder], target, kind="ablation", measures=[measure], width=174, overwrite=True
            )


if __name__ == "__main__":
    main()
