"""Read the heads of the real models, and keep what docs/attention.md is made of.

    python bench/heads.py                all studies that can be done here
    python bench/heads.py minilm smollm  some of them; series-nursery, series-bert: training
    python bench/heads.py smollm-all     one of the two readings of a model

Models and corpora are found as `bench/real.py` finds them. Each is read twice over the same
documents: with the default sample of queries, and with all of them, which is what the error
of the sample is judged by. Series are trained here, by `isoscope nursery train`, and every
checkpoint is read over the same documents. Runs go to bench/runs and are kept; readings to
bench/results/heads.
"""

import shutil
import sys
from dataclasses import dataclass

import real
from real import RUNS, Study, corpus_of, model_of

import isoscope as iso

RESULTS = real.HERE / "results" / "heads"
SAMPLES = ("16", "all")  # queries per document


@dataclass(frozen=True)
class Reading:
    """One model, and how many tokens of its corpus."""

    study: Study
    tokens: int = 30_000


READINGS = [
    Reading(Study("minilm", "minilm")),
    Reading(Study("minilm-untrained", "minilm", given={"untrained": True})),
    Reading(Study("rxnfp-pretrained", "rxnfp_bert_pretrained_fp16", "reactions")),
    Reading(Study("rxnfp-finetuned", "rxnfp_bert_ft_fp16", "reactions")),
    Reading(Study("smollm", "smollm"), 10_000),
    Reading(Study("whisper", "whisper_tiny_en_fp16", "speech"), 1_500),
]


# Series of checkpoints from step 0, and how they are trained.
SERIES = {
    "series-nursery": {},  # before attention stands a norm; rotary positions; next tokens
    "series-bert": {"arch": "bert"},  # as published: norms after the parts, masked tokens
}


def done(each: Reading, samples: tuple[str, ...] = SAMPLES) -> None:
    """Read the heads of a model, sampled and whole, and keep the readings."""
    study = each.study
    model = model_of(study)
    if model is None or not model.exists():
        print(f"{study.name}: no model {study.model} here", flush=True)
        return
    corpus, how = corpus_of(study)
    RESULTS.mkdir(parents=True, exist_ok=True)
    for queries in samples:
        run = RUNS / f"heads-{study.name}-{queries}"
        if not (run / "run.json").exists():
            iso.attention(
                model,
                corpus,
                output=run,
                tokens=each.tokens,
                length=256,
                queries=queries,
                **how,
                **study.given,
            )
        shutil.copy(run / "readings.parquet", RESULTS / f"{study.name}-{queries}.parquet")
        print(run.name, flush=True)


def train(name: str) -> None:
    """Train a small model, read the heads of its checkpoints, and keep the readings."""
    weights, run = RUNS / f"weights-{name}", RUNS / f"heads-{name}"
    if not (weights / "run.json").exists():
        iso.nursery_train(output=weights, **SERIES[name])
    if not (run / "run.json").exists():
        iso.attention(weights, output=run, tokens=30_000, length=128)
    RESULTS.mkdir(parents=True, exist_ok=True)
    shutil.copy(run / "readings.parquet", RESULTS / f"{name}.parquet")
    print(run.name, flush=True)


if __name__ == "__main__":
    chosen = sys.argv[1:]
    for name in SERIES:
        if not chosen or name in chosen:
            train(name)
    for each in READINGS:
        name = each.study.name
        if not chosen or name in chosen:
            done(each)
        elif some := tuple(sample for sample in SAMPLES if f"{name}-{sample}" in chosen):
            done(each, some)
