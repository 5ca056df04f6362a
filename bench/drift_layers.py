"""Correlate drift and mean cosine over the layers of the real models, as published.

    python bench/drift_layers.py               all models that are here
    python bench/drift_layers.py minilm        some of them
    python bench/drift_layers.py --page        write the table of docs/drift.md from the results
    python bench/drift_layers.py --page --check    exit 1 where the page says something else

Models and corpora are found as `bench/real.py` finds them. Each is surveyed at the embeddings
and at the outputs of its blocks, and `isoscope drift --survey` correlates. Results go to
bench/results/drift_layers.json as they come.
"""

import json
import sys
from pathlib import Path

from markdown_table import fill_page, table, write_or_check

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "drift_layers.json"
PAGE = HERE.parent / "docs" / "drift.md"
MODELS = {
    "minilm": ("MiniLM", 10_000),
    "minilm-untrained": ("MiniLM, random weights", 10_000),
    "rxnfp-pretrained": ("rxnfp, pre-trained", 10_000),
    "rxnfp-finetuned": ("rxnfp, fine-tuned", 10_000),
    "whisper": ("Whisper tiny, both stacks", 10_000),
    "smollm": ("SmolLM2-135M", 4_000),
}


def correlate(name: str) -> None:
    """Survey a model, correlate over its layers, and keep what was found."""
    from real import RUNS, STUDIES, corpus_of, model_of

    import isoscope as iso
    from isoscope.lab.drift.correlation import layers_of

    study = next(each for each in STUDIES if each.name == name)
    model = model_of(study)
    if model is None or not model.exists():
        print(f"{name}: no model {study.model} here", flush=True)
        return
    corpus, how = corpus_of(study)
    run = RUNS / f"layers-{name}"
    if not (run / "run.json").exists():
        iso.survey(
            model,
            corpus,
            output=run,
            sites=["embed", "resid"],
            measures=["isoscore", "mean-cosine"],
            tokens=MODELS[name][1],
            **how,
            **study.given,
        )
    (found,) = iso.drift(survey=[str(run)])
    norms, cosines = layers_of(iso.load(run))
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known[name] = {
        "layers": found.layers,
        "spearman": found.spearman,
        "p": found.p,
        "permutations": found.permutations,
        "exact": found.exact,
        "rows": max(e.n for e in iso.load(run).readings if "resid" in e.site),
        "norms": [round(each, 4) for each in norms],
        "cosines": [round(each, 4) for each in cosines],
    }
    RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print(name, known[name], flush=True)


def layers() -> str:
    """Return the table: one line per model."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = [
        [
            words,
            f"{known[name]['rows']:,}",
            str(known[name]["layers"]),
            f"{known[name]['spearman']:+.2f}",
            f"{known[name]['p']:.4f}" if known[name]["p"] >= 1e-4 else "< 0.0001",
            f"{'all ' * known[name]['exact']}{known[name]['permutations']:,}",
            " ".join(f"{each:.3g}" for each in known[name]["norms"]),
            " ".join(f"{each:.2f}" for each in known[name]["cosines"]),
        ]
        for name, (words, _) in MODELS.items()
        if name in known
    ]
    columns = [
        "model", "rows", "layers", "Spearman", "p, as published", "orders",
        "norm of the mean, by layer", "mean cosine, by layer",
    ]  # fmt: skip
    return table(columns, rows) if rows else "Not run yet: `python bench/drift_layers.py`."


def page(text: str) -> str:
    """Return the page with its table."""
    return fill_page(text, {"layers": layers})


if __name__ == "__main__":
    if "--page" in sys.argv:
        write_or_check(PAGE, page)
    for each in sys.argv[1:] or MODELS:
        correlate(each)
