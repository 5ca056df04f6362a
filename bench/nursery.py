"""How long the default training takes, and beside a plain loop on the same model and batch.

    python bench/nursery.py             write bench/results/nursery.json
    python bench/nursery.py FOLDER      the same, and keep the trained model there

The command is timed from process start to exit. Its tokens per second are those it prints at
its last step: of the whole training, with checkpoints and held-out losses. The plain loop
runs before and after it, on the weights of step 0 and batches of the same size, with the same
optimiser and clipping; it saves nothing. Two cells of the preset of `nursery ablate`, with
their trajectories, are timed as well.
"""

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean
from time import perf_counter

import torch

from isoscope.lab.nursery.ablation import ablation_of
from isoscope.store.run import load

RESULTS = Path(__file__).parent / "results" / "nursery.json"
TRAIN = [sys.executable, "-m", "isoscope", "nursery", "train"]
STEPS, BATCH, LENGTH = 60, 16, 128  # of the plain loop; batch and length are the command's
PLAIN = """
import sys
from time import perf_counter
import torch
import isoscope
from transformers import AutoModelForCausalLM

folder, steps, batch, length = sys.argv[1], *map(int, sys.argv[2:])
model = AutoModelForCausalLM.from_pretrained(folder).train()
texts = torch.randint(3, model.config.vocab_size, (steps, batch, length))
optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01, fused=True)
start = perf_counter()
for ids in texts:
    loss = model(ids, labels=ids).loss
    optimiser.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
print(texts.numel() / (perf_counter() - start))
"""


def plain(folder: Path) -> float:
    """Return tokens per second of a plain loop on the weights in a folder."""
    sizes = [str(each) for each in (STEPS, BATCH, LENGTH)]
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, str(folder), *sizes],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def cells(folder: Path) -> dict[str, float]:
    """Return the seconds that cells of the preset take, by their mixer."""
    flags = ["--factors", "attention", "--seeds", "1", "-q", "--json", "-o", str(folder)]
    subprocess.run([*TRAIN[:-1], "ablate", *flags], check=True, stdout=subprocess.DEVNULL)
    return {
        each.levels[0]: round(each.seconds, 1) for each in ablation_of(load(folder)).records
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as spare:
        begun = Path(spare) / "begun"
        subprocess.run([*TRAIN, "--steps", "1", "-q", "-o", begun], check=True)
        busy = os.getloadavg()
        before = plain(begun / "step_0")
        folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(spare) / "default"
        start = perf_counter()
        done = subprocess.run(
            [*TRAIN, "--json", "-o", folder], capture_output=True, text=True, check=True
        )
        seconds = perf_counter() - start
        after = plain(begun / "step_0")
        taken = cells(Path(spare) / "cells")
    last = json.loads(done.stdout.splitlines()[-1])
    speeds = re.findall(r"([\d,]+) tokens/s", done.stderr)
    speed = float(speeds[-1].replace(",", ""))
    found = {
        "command": "isoscope nursery train -o runs/default",
        "seconds": round(seconds, 1),
        "steps": last["step"],
        "tokens": last["tokens"],
        "parameters": last["parameters"],
        "held_out_loss": last["held_out_loss"],
        "unigram_entropy": last["unigram_entropy"],
        "tokens_per_second": speed,
        "plain_tokens_per_second": [round(each) for each in (before, after)],
        "ratio": round(fmean((before, after)) / speed, 3),
        "cells": taken,
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "load": [round(each, 2) for each in busy],
        },
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
