"""Planted worlds for bench/explain.py: tokens whose mean cosine has causes of known size.

Documents of very different lengths, types as frequent as Zipf says, noise that differs from
dimension to dimension. Every cause has a direction of its own, at right angles to the others,
so that the parts of the mean cosine add up and the planted shares are beyond dispute.
"""

from dataclasses import dataclass

import numpy as np

from isoscope.accumulate import ArrayBlock, Directions
from isoscope.accumulate.bands import Bands, Crossing
from isoscope.accumulate.row_bands import frequency_bands
from isoscope.causes import BandedDirections, CloudSums
from isoscope.hashing import named_documents

CAUSES = ("sinks", "dimensions", "frequency", "position", "mean")
KINDS = {"frequency": ("step", "gradual"), "position": ("fast", "slow")}
TYPES = 5000
SINK = 10.0  # times the median norm of its document, and a row is a sink
FULL = 0.9  # of a row's squared length may be effects


@dataclass(frozen=True)
class Plan:
    """What is planted: causes (a kind after a colon, where there are several) and size."""

    causes: tuple[str, ...]
    d: int
    documents: int
    topics: float = 0.0  # share of the noise that the rows of a document have in common

    @property
    def short(self) -> bool:
        """Whether documents are short, so that one sink in each is many rows."""
        return "sinks" in self.causes


def mixed(ways: int, d: int, documents: int, seed: int, topics: float = 0.0) -> Plan:
    """Return a plan with so many causes, drawn at random, of kinds drawn at random."""
    rng = np.random.default_rng([seed, ways, d, documents])
    drawn = [str(each) for each in rng.choice(CAUSES, ways, replace=False)]
    kinds = [f"{each}:{rng.choice(KINDS[each])}" if each in KINDS else each for each in drawn]
    return Plan(tuple(kinds), d, documents, topics)


@dataclass(frozen=True)
class Tokens:
    """Where the rows stand."""

    document: np.ndarray
    position: np.ndarray
    token: np.ndarray

    @classmethod
    def drawn(cls, plan: Plan, rng: np.random.Generator) -> "Tokens":
        """Return documents of lognormal lengths and tokens of Zipf's frequencies."""
        middle, spread, least, most = (9, 0.4, 4, 32) if plan.short else (60, 0.5, 16, 256)
        lengths = rng.lognormal(np.log(middle), spread, plan.documents).astype(int)
        lengths = np.clip(lengths, least, most)
        position = np.concatenate([np.arange(each) for each in lengths])
        zipf = 1 / np.arange(1, TYPES + 1)
        token = rng.choice(TYPES, len(position), p=zipf / zipf.sum())
        return cls(np.repeat(np.arange(plan.documents), lengths), position, token)

    def profile(self, cause: str, rng: np.random.Generator) -> np.ndarray:
        """Return how strongly a cause acts on every row; nowhere would be zero."""
        if cause == "frequency:step":
            return (self.token < rng.integers(10, 100)).astype(float)
        if cause == "frequency:gradual":
            return 1 - np.log(self.token + 1) / np.log(TYPES)
        if cause == "position:fast":
            return np.exp(-self.position / (self.position.max() * rng.uniform(0.02, 0.08)))
        if cause == "position:slow":
            end = np.quantile(self.position, rng.uniform(0.8, 1.0)) + 1
            straight, bent = self.position / end, np.log1p(self.position) / np.log1p(end)
            return np.clip(1 - (straight if rng.random() < 0.5 else bent), 0, None)
        return np.ones(len(self.token))


def axes(d: int, rng: np.random.Generator) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return a direction for every cause, and the two rogue dimensions."""
    rogue = rng.choice(d, 2, replace=False)
    frame = rng.normal(size=(d, 5))
    frame[:, 0] = 0
    part = rng.uniform(0.25, 0.75)
    frame[rogue, 0] = np.sqrt([part, 1 - part]) * rng.choice([-1, 1], 2)
    directions = np.linalg.qr(frame)[0].T
    names = ("dimensions", "sinks", "frequency", "position", "mean")
    return dict(zip(names, directions, strict=True)), rogue


@dataclass(frozen=True)
class World:
    """A cloud and the shares that were planted in it."""

    cloud: CloudSums
    truth: dict[str, float]
    rogue: tuple[int, ...]
    strength: float  # the mean cosine that was planted


def planted(plan: Plan, seed: int) -> World:
    """Return a world of the plan, in proportions drawn at random."""
    rng = np.random.default_rng([seed, plan.d, plan.documents])
    tokens = Tokens.drawn(plan, rng)
    sink = (tokens.position == 0) & plan.short
    others = [each for each in plan.causes if each != "sinks"]
    profiles = {}
    for cause in others:
        profile = np.where(sink, 0.0, tokens.profile(cause, rng))
        profiles[cause] = profile / profile.mean()  # so that its square is its mean cosine
    strengths = _strengths(plan, profiles, float(sink.mean()), rng)
    directions, rogue = axes(plan.d, rng)
    effect = np.zeros((len(sink), plan.d), dtype=np.float32)
    for cause in others:
        along = directions[cause.partition(":")[0]].astype(np.float32)
        pull = (np.sqrt(strengths[cause]) * profiles[cause]).astype(np.float32)
        effect += pull[:, None] * along
    rows = _with_noise(effect, tokens.document, rogue, plan.topics, rng)
    rows[sink] = directions["sinks"]
    rows *= rng.lognormal(0, 0.3, (len(sink), 1)).astype(np.float32)
    rows[sink] *= rng.uniform(50, 200, (int(sink.sum()), 1)).astype(np.float32)
    whole = sum(strengths.values())
    truth = dict.fromkeys(CAUSES, 0.0)
    for cause, part in strengths.items():
        truth[cause.partition(":")[0]] += part / whole
    return World(_cloud(rows, tokens), truth, tuple(int(each) for each in rogue), whole)


def _strengths(
    plan: Plan, profiles: dict[str, np.ndarray], sinks: float, rng: np.random.Generator
) -> dict[str, float]:
    """Return the part of the mean cosine that each cause is to have.

    All proportions are alike to be drawn, except those that would make an effect longer than
    the row it acts on. Sinks are as many as there are documents: the others follow them.
    """
    for _ in range(100_000):
        parts = dict(zip(plan.causes, rng.dirichlet(np.ones(len(plan.causes))), strict=True))
        squares = [parts[each] * profile**2 for each, profile in profiles.items()]
        most = FULL / float(np.max(np.sum(squares, axis=0))) if profiles else np.inf
        if not plan.short:
            strength = min(float(np.exp(rng.uniform(np.log(0.02), np.log(0.2)))), most)
            return {cause: strength * part for cause, part in parts.items()}
        strength = sinks**2 / parts["sinks"]
        if strength < most:
            return {cause: strength * part for cause, part in parts.items()}
    raise ValueError(f"no proportions fit {plan}")


def _with_noise(
    effect: np.ndarray,
    document: np.ndarray,
    rogue: np.ndarray,
    topics: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return unit rows: the effects, and noise at right angles to them."""
    n, d = effect.shape
    scale = rng.lognormal(0, 0.3, d).astype(np.float32)
    scale[rogue] *= 2  # dimensions that stand out also vary more
    noise = rng.standard_normal((n, d), dtype=np.float32)
    if topics:
        shared = rng.standard_normal((document.max() + 1, d), dtype=np.float32)[document]
        noise = np.sqrt(1 - topics) * noise + np.sqrt(topics) * shared
    noise *= scale
    taken = np.vecdot(effect, effect)
    along = np.vecdot(noise, effect) / np.where(taken > 0, taken, 1)
    noise -= along[:, None] * effect
    noise *= (np.sqrt(1 - taken) / np.linalg.norm(noise, axis=1))[:, None]
    return (effect + noise).astype(np.float32)


def _cloud(rows: np.ndarray, tokens: Tokens) -> CloudSums:
    """Return what a survey would have kept of the rows; sinks are found by their norms."""
    keys = named_documents(tokens.document)
    bands = frequency_bands(np.bincount(tokens.token, minlength=TYPES))
    norms = np.linalg.norm(rows, axis=1)
    starts = np.flatnonzero(tokens.position == 0)
    middle = [np.median(each) for each in np.split(norms, starts[1:])]
    sink = norms > SINK * np.array(middle)[tokens.document]

    def seen(chosen: np.ndarray) -> list:
        block = ArrayBlock(
            rows[chosen],
            keys[chosen],
            tokens.position[chosen].astype(np.uint64),
            tokens=tokens.token[chosen],
            frequency=bands[tokens.token[chosen]],
        )
        kinds = [kind(block.width) for kind in (Directions, Bands, Crossing)]
        for kind in kinds:
            kind.update(block)
        return kinds

    return CloudSums.of(BandedDirections(*seen(~sink)), seen(sink)[0] if sink.any() else None)
