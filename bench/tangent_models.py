"""Read the gradients of nursery series and real models: what docs/tangent.md is made of.

    python bench/tangent_models.py                 all studies
    python bench/tangent_models.py decoder smollm  some of them

The two series are trained here, by `isoscope nursery train`, with 24 log-spaced checkpoints
after step 0. Ten of them are read, so that three lie in the late half of training. Models are
found as `bench/real.py` finds them, and all read the bundled text. Runs go to bench/runs and
are kept; readings to bench/results/tangent.
"""

import shutil
import sys

import real
from real import RUNS, Study, model_of

import isoscope as iso

RESULTS = real.HERE / "results" / "tangent"
SERIES = {"decoder": {}, "encoder": {"objective": "masked"}}
STEPS = (0, 1, 5, 16, 49, 113, 197, 344, 454, 600)
BLOCK = "gradw.layers.1"  # the four maps of a block in the middle
GRADIENTS = {"tokens": 20_000, "length": 128, "batch": 8, "threads": 1}
# SmolLM2 takes most of the time: fewer tokens, and fewer in a micro-batch, so that there are
# enough of these for intervals of weight gradients.
SMALL = {"tokens": 8_000, "length": 128, "batch": 4}
MODELS = {
    "smollm": (
        "smollm",
        {
            "sites": [
                "grad.0", "grad.14", "grad.28",
                "gradw.layers.14.mlp.up_proj", "gradw.layers.14.self_attn.q_proj",
            ],
            **SMALL,
        },
    ),
    "smollm-no-sink": (
        "smollm",
        {"sites": ["grad.0", "grad.14", "grad.28"], "variant": "no-sink", **SMALL},
    ),
    "minilm": (
        "minilm",
        {
            "sites": [
                "grad",
                "gradw.encoder.layer.3.intermediate",
                "gradw.encoder.layer.3.attention.self.query",
            ],
            **GRADIENTS,
        },
    ),
}  # fmt: skip


def keep(name: str, model: object, **how: object) -> None:
    """Read gradients, unless the run is there, and keep the readings."""
    run = RUNS / f"tangent-{name}"
    if not (run / "run.json").exists():
        iso.tangent(model, output=run, **how)
    RESULTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(run / "readings.parquet", RESULTS / f"{name}.parquet")
    print(run.name, flush=True)


def train(name: str) -> None:
    """Train a small model, and read the gradients of its checkpoints."""
    weights = RUNS / f"weights-tangent-{name}"
    if not (weights / "run.json").exists():
        iso.nursery_train(output=weights, checkpoints=24, threads=1, **SERIES[name])
    RESULTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(weights / "metrics.csv", RESULTS / f"{name}-metrics.csv")
    series = [weights / f"step_{step}" for step in STEPS]
    keep(name, series, sites=["grad", BLOCK], **GRADIENTS)


if __name__ == "__main__":
    chosen = sys.argv[1:] or [*SERIES, *MODELS]
    for name in chosen:
        if name in SERIES:
            train(name)
            continue
        where, how = MODELS[name]
        model = model_of(Study(name, where))
        if model is None:
            print(f"{name}: no model {where} here", flush=True)
        else:
            keep(name, model, **how)
