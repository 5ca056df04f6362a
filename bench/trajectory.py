"""What a person waits for: a trajectory beside the plain script of the same work.

    python bench/trajectory.py                five turns of all ways
    python bench/trajectory.py 3 "as typed"   three turns of one way

Twelve checkpoints of a model of 3.5 million parameters, 100,000 tokens each, from process
start to exit. The plain script tokenises once, loads every checkpoint and runs the same
documents in batches of 32, sorted by length; it computes nothing of the states. Three ways
take turns with it: as it is typed, in two processes with one thread each, and without the
older theories. Results go to bench/results/trajectory.json; `cpu` is user and system time,
which other work on the machine does not change much.
"""

import json
import os
import platform
import random
import statistics
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from wait import ISOSCOPE, timed, write_corpus

RESULTS = Path(__file__).parent / "results" / "trajectory.json"
CHECKPOINTS, TOKENS, LENGTH = 12, 100_000, 512
PLAIN = """
import sys
import torch
from transformers import AutoModel, AutoTokenizer

corpus, tokens, length, *folders = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folders[0])
documents, total = [], 0
with open(corpus) as lines:
    for line in lines:
        found = tokenizer(line.strip(), truncation=True, max_length=int(length))["input_ids"]
        documents.append(found)
        total += len(found)
        if total >= int(tokens):
            break
documents.sort(key=len)
for folder in folders:
    model = AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        for start in range(0, len(documents), 32):
            rows = {"input_ids": documents[start : start + 32]}
            model(**tokenizer.pad(rows, return_tensors="pt"))
"""
WAYS = {
    "as typed": [],
    "two processes, one thread each": ["--engine", "pool", "--workers", "2", "--threads", "1"],
    "without theories": ["--no-theories"],
}


def write_series(folder: Path) -> list[Path]:
    """Write checkpoints of a random GPT-NeoX that drifts, with a tokenizer of its own."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

    bundled = Path(find_spec("isoscope").submodule_search_locations[0])
    text = (bundled / "source/corpus/bundled/text.txt").read_text("utf-8")
    words = Tokenizer(models.BPE(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.ByteLevel()
    special = ["<unk>", "<eos>"]
    trainer = trainers.BpeTrainer(vocab_size=2048, special_tokens=special)
    words.train_from_iterator([text], trainer)
    roles = {"unk_token": "<unk>", "eos_token": "<eos>", "pad_token": "<eos>"}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, **roles)
    torch.manual_seed(0)
    model = GPTNeoXForCausalLM(
        GPTNeoXConfig(
            vocab_size=2048,
            hidden_size=192,
            num_hidden_layers=6,
            num_attention_heads=6,
            intermediate_size=768,
            max_position_embeddings=LENGTH,
        )
    )
    found = []
    for number in range(CHECKPOINTS):
        found.append(folder / f"step_{number * 100}")
        model.save_pretrained(found[-1])
        tokenizer.save_pretrained(found[-1])
        with torch.no_grad():
            for each in model.parameters():
                each.add_(0.01 * torch.randn_like(each))
    return found


def main(turns: int, ways: list[str]) -> None:
    """Measure ways in turns and write them down."""
    if unknown := set(ways) - set(WAYS):
        raise SystemExit(f"no way is called {unknown.pop()!r}; there are {', '.join(WAYS)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a command is compiled once
    random.seed(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        series, corpus, script = folder / "series", folder / "corpus.txt", folder / "plain.py"
        checkpoints = write_series(series)
        write_corpus(corpus)
        script.write_text(PLAIN, encoding="utf-8")
        sizes = [str(TOKENS), str(LENGTH)]
        plain = [sys.executable, str(script), str(corpus), *sizes, *map(str, checkpoints)]
        flags = ["--tokens", sizes[0], "--length", sizes[1], "-q"]
        rows: dict[str, list[dict]] = {"plain": [], **{way: [] for way in ways}}
        for turn in range(turns):
            rows["plain"].append(timed(*plain))
            print("plain", rows["plain"][-1], flush=True)
            for way in ways:
                run = ["-o", str(folder / f"run-{turn}-{way}")]
                command = [ISOSCOPE, "trajectory", str(series), str(corpus), *flags, *WAYS[way]]
                rows[way].append(timed(*command, *run))
                print(way, rows[way][-1], flush=True)
            _write(rows)


def _write(rows: dict[str, list[dict]]) -> None:
    def ratio(way: str, what: str) -> float:
        pairs = zip(rows[way], rows["plain"], strict=True)
        return round(statistics.median(a[what] / b[what] for a, b in pairs), 2)

    found = {
        "rows": rows,
        "ratio": {way: ratio(way, "seconds") for way in rows if way != "plain"},
        "ratio_cpu": {way: ratio(way, "cpu") for way in rows if way != "plain"},
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}, "
        f"Python {platform.python_version()}",
        "load": [round(each, 2) for each in os.getloadavg()],
    }
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:] or list(WAYS))
