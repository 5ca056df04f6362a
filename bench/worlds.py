"""Planted worlds for bench/explain.py: tokens whose mean cosine has causes of known size.

Documents of very different lengths, types as frequent as Zipf says, noise that differs from
dimension to dimension. Every cause has a direction of its own, at right angles to the others.
The truth is what the definition of each share gives for the mean unit vectors and weights of
the population's cells: all types and positions, however many rows were drawn.
"""

from dataclasses import dataclass

import numpy as np

from isoscope.accumulate import ArrayBlock, Directions, Reservoir, ReservoirSummary
from isoscope.accumulate.bands import BandCells
from isoscope.accumulate.row_bands import frequency_bands, position_bands
from isoscope.causes import BandedDirections, CloudSums
from isoscope.hashing import named_documents

CAUSES = ("sinks", "dimensions", "frequency", "position", "mean")
KINDS = {"frequency": ("step", "gradual"), "position": ("fast", "slow")}
TYPES = 5000
ZIPF = 1 / np.arange(1, TYPES + 1) / np.sum(1 / np.arange(1, TYPES + 1))
POSITIONS = 256  # documents are no longer
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

    def lengths(self, documents: int, rng: np.random.Generator) -> np.ndarray:
        """Return lengths of documents."""
        middle, spread, least, most = (9, 0.4, 4, 32) if self.short else (60, 0.5, 16, 256)
        drawn = rng.lognormal(np.log(middle), spread, documents).astype(int)
        return np.clip(drawn, least, most)


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
        lengths = plan.lengths(plan.documents, rng)
        position = np.concatenate([np.arange(each) for each in lengths])
        token = rng.choice(TYPES, len(position), p=ZIPF)
        return cls(np.repeat(np.arange(plan.documents), lengths), position, token)

    def profile(self, cause: str, rng: np.random.Generator) -> np.ndarray:
        """Return how strongly a cause acts at every type, or at every position."""
        places = np.arange(POSITIONS)
        if cause == "frequency:step":
            return (np.arange(TYPES) < rng.integers(10, 100)).astype(float)
        if cause == "frequency:gradual":
            return 1 - np.log(np.arange(TYPES) + 1) / np.log(TYPES)
        if cause == "position:fast":
            return np.exp(-places / (self.position.max() * rng.uniform(0.02, 0.08)))
        if cause == "position:slow":
            end = np.quantile(self.position, rng.uniform(0.8, 1.0)) + 1
            straight, bent = places / end, np.log1p(places) / np.log1p(end)
            return np.clip(1 - (straight if rng.random() < 0.5 else bent), 0, None)
        return np.ones(TYPES)

    def at(self, cause: str, profile: np.ndarray) -> np.ndarray:
        """Return a profile at every row."""
        return profile[self.position if cause.startswith("position") else self.token]


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
class Population:
    """Mean unit vectors of all types and positions, on the axes of the causes."""

    by_type: np.ndarray  # (TYPES, k) the part that a type has
    by_place: np.ndarray  # (POSITIONS, k) the part that a position has
    places: np.ndarray  # (POSITIONS,) share of the rows that are not sinks
    axes: np.ndarray  # (k, d)
    sinks: float  # share of all rows; they are at right angles to all others

    def truth(self, dimensions: list[int]) -> dict[str, float]:
        """Return what the definitions give; `dimensions` are those that were named."""
        frequency = frequency_bands(ZIPF)
        position = position_bands(np.arange(POSITIONS))
        f, type_means = _cells(frequency, ZIPF, self.by_type)
        p, place_means = _cells(position, self.places, self.by_place)
        mean = f @ type_means + p @ place_means  # types do not depend on positions
        common = float(mean @ mean)
        by_type = float(f @ np.sum((type_means + p @ place_means) ** 2, axis=1))
        by_place = float(p @ np.sum((place_means + f @ type_means) ** 2, axis=1))
        crossed = np.sum((type_means[:, None] + place_means) ** 2, axis=2)
        both = float(f @ crossed @ p)
        squares = (mean @ self.axes) ** 2
        every = (1 - self.sinks) ** 2 * common + self.sinks**2
        out = {"sinks": 1 - common / every}
        if common:
            out["dimensions"] = float(squares[dimensions].sum() / common)
        if not both:
            return out
        for name, own, other in (
            ("frequency", by_type, by_place),
            ("position", by_place, by_type),
        ):
            first, last = (own - common) / both, (both - other) / both
            out |= {
                name: (first + last) / 2,
                f"{name} first": first,
                f"{name} last": last,
                f"{name} alone": (own - common) / own,
            }
        return out | {"mean": common / both}


def _cells(
    bands: np.ndarray, weights: np.ndarray, means: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight and the mean of every band that has any weight."""
    inside = [(bands == band) & (weights > 0) for band in np.unique(bands)]
    inside = [each for each in inside if each.any()]
    shares = np.array([weights[each].sum() for each in inside])
    found = [weights[each] @ means[each] / weights[each].sum() for each in inside]
    return shares / shares.sum(), np.array(found)


@dataclass(frozen=True)
class World:
    """A cloud and the population that its rows were drawn from."""

    cloud: CloudSums
    population: Population
    rogue: tuple[int, ...]
    strength: float  # the mean cosine that was planted


def planted(plan: Plan, seed: int) -> World:
    """Return a world of the plan, in proportions drawn at random."""
    rng = np.random.default_rng([seed, plan.d, plan.documents])
    tokens = Tokens.drawn(plan, rng)
    sink = (tokens.position == 0) & plan.short
    others = [each for each in plan.causes if each != "sinks"]
    shapes, profiles = {}, {}
    for cause in others:
        shape = tokens.profile(cause, rng)
        profile = np.where(sink, 0.0, tokens.at(cause, shape))
        shapes[cause] = shape / profile.mean()
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
    population = _population(plan, strengths, shapes, directions)
    named = tuple(int(each) for each in rogue)
    return World(_cloud(rows, tokens), population, named, sum(strengths.values()))


def _population(
    plan: Plan,
    strengths: dict[str, float],
    shapes: dict[str, np.ndarray],
    directions: dict[str, np.ndarray],
) -> Population:
    """Return the means that were planted, for every type and position."""
    lengths = plan.lengths(1_000_000, np.random.default_rng(0))
    places = (
        np.bincount(lengths, minlength=POSITIONS + 1)[::-1].cumsum()[::-1][1:].astype(float)
    )
    sinks = places[0] / places.sum() if plan.short else 0.0
    if plan.short:
        places[0] = 0
    names = list(shapes)
    by_type, by_place = np.zeros((TYPES, len(names))), np.zeros((POSITIONS, len(names)))
    for axis, cause in enumerate(names):
        into = by_place if cause.startswith("position") else by_type
        into[:, axis] = np.sqrt(strengths[cause]) * shapes[cause]
    along = [directions[cause.partition(":")[0]] for cause in names]
    frame = np.array(along).reshape(len(names), plan.d)
    return Population(by_type, by_place, places / places.sum(), frame, float(sinks))


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
    """Return what a survey would have kept of the rows."""
    return seen_by_survey(
        rows, tokens.document, tokens.position, frequency_bands(ZIPF)[tokens.token]
    )


def seen_by_survey(
    rows: np.ndarray, document: np.ndarray, position: np.ndarray, frequency: np.ndarray
) -> CloudSums:
    """Return what a survey would have kept of rows; sinks are found by their norms.

    Bands of frequency are given, as with `--frequencies`: those of the population.
    """
    sink = find_sinks(rows, position, document)

    def seen(chosen: np.ndarray) -> list:
        block = ArrayBlock(
            rows[chosen],
            named_documents(document)[chosen],
            position[chosen].astype(np.uint64),
            frequency=frequency[chosen].astype(np.int8),
        )
        kinds = [kind(block.width) for kind in (Directions, BandCells)]
        for kind in kinds:
            kind.update(block)
        return kinds

    return CloudSums.of(BandedDirections(*seen(~sink)), seen(sink)[0] if sink.any() else None)


def find_sinks(rows: np.ndarray, position: np.ndarray, document: np.ndarray) -> np.ndarray:
    """Return which rows are far longer than the median of their document."""
    norms = np.linalg.norm(rows, axis=1)
    starts = np.flatnonzero(position == 0)
    middle = [np.median(each) for each in np.split(norms, starts[1:])]
    return norms > SINK * np.array(middle)[document]


def sample_of(rows: np.ndarray, document: np.ndarray, position: np.ndarray) -> ReservoirSummary:
    """Return the rows that a survey samples, without sinks."""
    kept = ~find_sinks(rows, position, document)
    sample = Reservoir(rows.shape[1])
    places = position[kept].astype(np.uint64)
    sample.update(ArrayBlock(rows[kept], named_documents(document)[kept], places))
    return sample.finalize()
