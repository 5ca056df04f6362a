"""Closed forms: what an untrained block does on average over its initialisations.

Rows are a common part and parts of their own, of which only the energies (squared norms) are
followed; weights are independent Gaussians, so that what a matrix adds is orthogonal, on
average, to what was there. Scores of one query over keys are then Gaussian, and what softmax
makes of them are integrals over one variable. Finite-size factors are those of a head's width
and of the number of keys.
"""

from collections.abc import Callable
from functools import cache
from math import erf, lgamma, log, pi, sqrt

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.laguerre import laggauss

from isoscope.dataclass import dataclass
from isoscope.lab.drift.architecture import ARCHITECTURES, QUANTITIES, Architecture, Shape
from isoscope.types import Array

BASE = 10_000.0  # of rotary frequencies
CATEGORICAL = 64.0  # spread of scores beyond which softmax is followed to first order
WIDE = 1.0  # spread of scores up to which only their variance matters to softmax
PAIRS = 512  # queries of a causal block whose pairs are looked at
NODES = 16  # numbers of visible keys at which a causal block is computed
Values = dict[str, float | None]


@dataclass(frozen=True)
class Cloud:
    """The energy that all rows have in common, and that of each row's own part."""

    common: float
    own: float

    @property
    def cosine(self) -> float:
        """The mean cosine of two rows."""
        return self.common / (self.common + self.own)

    def scaled(self, energy: float) -> "Cloud":
        """Return the same cloud with another energy per row: what a norm does."""
        ratio = energy / (self.common + self.own)
        return Cloud(self.common * ratio, self.own * ratio)

    def plus(self, other: "Cloud") -> "Cloud":
        """Return the sum with a cloud that is orthogonal to it."""
        return Cloud(self.common + other.common, self.own + other.own)

    def mean_norm(self, rows: int) -> float:
        """Return the norm of the mean of some rows."""
        return sqrt(self.common + self.own / rows)


@dataclass(frozen=True)
class Biases:
    """Norms of the drift in the biases of the first block."""

    norm: float = 0.0
    query: float = 0.0
    key: float = 0.0


def predict(name: str, place: str, norm: float, shape: Shape) -> list[Values]:
    """Return the quantities of every block; None where there is no closed form.

    >>> shape = Shape(width=768, heads=12, inner=3072, tokens=512, blocks=1, std=0.02)
    >>> (block,) = predict("bert", "input", 100.0, shape)
    >>> round(block["cosine-in"], 3), round(block["score-spread"], 2)
    (0.929, 1.14)
    """
    architecture = ARCHITECTURES[name]
    cloud: Cloud | None = Cloud(norm**2 if place == "input" else 0.0, float(shape.width))
    biases = Biases(
        norm=norm if place == "norm-bias" else 0.0,
        query=norm if place in ("query-bias", "query-key-bias") else 0.0,
        key=norm if place in ("key-bias", "query-key-bias") else 0.0,
    )
    found: list[Values] = []
    for number in range(shape.blocks):
        if cloud is None:
            found.append(dict.fromkeys(QUANTITIES))
            continue
        at = biases if number == 0 else Biases()
        values, cloud = _block(architecture, shape, cloud, at)
        found.append(values)
    return found


def predict_fixed_point(name: str, shape: Shape, norms: tuple[float, ...]) -> float | None:
    """Return the drift that leaves the blocks as it entered; None where there is none."""

    def excess(norm: float) -> float:
        last = predict(name, "input", norm, shape)[-1]["mean-norm-out"]
        assert last is not None
        return last - sqrt(norm**2 + shape.width / shape.tokens)

    low, high = min(norms), max(norms)
    if not excess(low) >= 0 > excess(high):
        return None
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) >= 0 else (low, middle)
    return (low + high) / 2


def _block(
    architecture: Architecture, shape: Shape, cloud: Cloud, biases: Biases
) -> tuple[Values, Cloud | None]:
    """Return the quantities of one block and its output; None where that is not known."""
    d, n = shape.width, shape.tokens
    into = cloud.scaled(d) if architecture.pre_norm else cloud
    into = Cloud(into.common + biases.norm**2, into.own)
    scores = _scores(architecture, shape, into, biases)
    softmax = _softmax_of(architecture, shape, scores)
    values: Values = dict.fromkeys(QUANTITIES)
    values |= {
        "cosine-in": cloud.cosine,
        "mean-norm-in": cloud.mean_norm(n),
        "score-spread": _mean_spread(architecture, shape, scores),
    }
    if softmax is not None:
        values |= {"attention-entropy": softmax[0], "largest-probability": softmax[1]}
    attended = _attended(architecture, shape, into, scores)
    if attended is None:
        return values, None
    mixed, values["cosine-attention"] = attended
    out = _output(architecture, shape, cloud, mixed)
    values |= {"cosine-out": out.cosine, "mean-norm-out": out.mean_norm(n)}
    return values, out


def _output(architecture: Architecture, shape: Shape, cloud: Cloud, mixed: Cloud) -> Cloud:
    """Return what a block makes of its input and of what its attention mixed."""
    d = shape.width
    out_std = shape.std / (sqrt(2 * shape.blocks) if architecture.scaled else 1.0)
    through = (shape.std * out_std * d) ** 2  # values, then the output projection
    after = cloud.plus(Cloud(mixed.common * through, mixed.own * through))
    inner = d * shape.inner * out_std**2
    if architecture.pre_norm:
        read = cloud if architecture.parallel else after
        return after.plus(_mlp(architecture, shape, read.cosine, inner))
    read = after.scaled(d)
    return read.plus(_mlp(architecture, shape, read.cosine, inner)).scaled(d)


# --- scores -------------------------------------------------------------------------------
@dataclass(frozen=True)
class Scores:
    """Variances of scaled scores over the keys of a query."""

    own: float  # from what keys do not share
    shared: float  # the part of it that all queries have in common
    turned: float  # from what keys share, times the share of it that rotary positions vary


def _scores(architecture: Architecture, shape: Shape, into: Cloud, biases: Biases) -> Scores:
    """Return sigma^4 (c + v) v, and the like with biases: energy of queries times of keys."""
    d, variance = shape.width, shape.std**2
    query = variance * (into.common + into.own) + biases.query**2 / d
    common = variance * into.common + biases.query**2 / d
    keys, key = variance * into.own, variance * into.common + biases.key**2 / d
    turned = query * key if architecture.rotary else 0.0
    return Scores(query * keys, common * keys, turned)


def _mean_spread(architecture: Architecture, shape: Shape, scores: Scores) -> float:
    """Return the mean over queries and heads of the standard deviation of scores over keys."""
    counts, weights = _visible(architecture, shape)
    few = np.array([_root_of_chi(round(n) - 1) * sqrt((n - 1) / n) for n in counts])
    if not scores.turned:
        return float(weights @ few) * sqrt(scores.own) * _root_of_chi(shape.head_width)
    found = [_turned_spread(architecture, shape, scores, n) for n in counts]
    return float(weights @ (np.array(found) * few / np.sqrt(1 - 1 / counts)))


def _turned_spread(
    architecture: Architecture, shape: Shape, scores: Scores, count: float
) -> float:
    """Return the mean spread where rotary positions turn the part that keys share.

    In a head of width w, plane f adds own 2/w E + turned 4/w E F V to the variance, with
    independent exponentials E (of the query) and F (of the key) and V the variance of
    cos(m a + phase) over distances m. The mean root of such a sum follows from its Laplace
    transform: E sqrt(x) = 1 / (2 sqrt(pi)) int (1 - E exp(-t x)) t^(-3/2) dt.
    """
    planes = _plane_variances(architecture, shape, round(count))  # (planes, phases)
    still = shape.head_width // 2 - len(planes)
    own = scores.own * (1 - 1 / count) * 2 / shape.head_width
    turned = scores.turned * 4 / shape.head_width
    mean = own * shape.head_width / 2 + turned * float(planes.mean(1).sum())
    t = np.exp(np.linspace(-18.0, 18.0, 181)) / mean
    nodes, weights = laggauss(12)
    slow = 1 + t * own
    ratio = t * turned / slow  # (t,)
    whole = slow ** -float(still)
    for plane in planes:
        inside = 1 / (1 + ratio[:, None, None] * nodes[:, None] * plane)  # (t, nodes, phases)
        whole *= (weights @ inside.mean(-1).T) / slow
    middle = np.trapezoid((1 - whole) / np.sqrt(t), dx=0.2)
    ends = 2 * mean * sqrt(t[0]) + 2 / sqrt(t[-1])
    return float(middle + ends) / (2 * sqrt(pi))


@cache
def _plane_variances(architecture: Architecture, shape: Shape, count: int) -> Array:
    """Return the variance of cos(m a + phase) over m < count, for every plane and 4 phases."""
    turned = int(shape.head_width * architecture.rotary)
    angles = BASE ** -(np.arange(0, turned, 2) / turned)  # (planes,)
    steps = np.exp(1j * np.outer(angles, np.arange(count)))  # (planes, count)
    once, twice = steps.mean(1)[:, None], (steps**2).mean(1)[:, None]
    phases = np.exp(2j * pi * np.arange(4) / 4)
    return (1 - np.abs(once) ** 2 + ((twice - once**2) * phases).real) / 2


def _root_of_chi(freedom: int) -> float:
    """Return the mean root of a chi-square over its degrees of freedom."""
    return sqrt(2 / freedom) * float(np.exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)))


@cache
def _visible(architecture: Architecture, shape: Shape) -> tuple[Array, Array]:
    """Return numbers of visible keys, two at least, and the share of queries that see them."""
    n = shape.tokens
    if not architecture.causal:
        return np.array([float(n)]), np.ones(1)
    counts = np.arange(2, n + 1)
    edges = np.unique(np.geomspace(2, n + 1, NODES + 1).round().astype(int))
    if n <= NODES:
        edges = np.arange(2, n + 2)
    groups = np.split(counts, edges[1:-1] - 2)
    sizes = np.array([len(each) for each in groups], dtype=float)
    return np.array([each.mean() for each in groups]), sizes / sizes.sum()


# --- softmax ------------------------------------------------------------------------------
@dataclass(frozen=True)
class Softmax:
    """Means of softmax over independent Gaussian scores."""

    entropy: float
    largest: float
    overlap: float  # sum of squared probabilities
    tilt: float  # sum of probabilities times standard scores


@cache
def gaussian_softmax(spread: float, counts: tuple[float, ...]) -> tuple[Softmax, ...]:
    """Return what softmax makes of so many independent Gaussian scores, on average.

    With Z the sum of exponentials, 1/Z = int exp(-tZ) dt turns each mean into an integral
    over u = log t of powers of phi(t) = E exp(-t exp(s g)); E log Z is that of
    exp(-t) - phi(t)^n over u.

    >>> (found,) = gaussian_softmax(1e-6, (512.0,))
    >>> round(found.entropy / log(512), 6), round(512 * found.overlap, 6)
    (1.0, 1.0)
    """
    if spread > CATEGORICAL:
        least = gaussian_softmax(CATEGORICAL, counts)
        return tuple(_sharpened(each, CATEGORICAL / spread) for each in least)
    between = min(0.08, 0.3 / max(spread, 1e-9))
    g = np.arange(-8.5, 8.5, between)
    mass = np.exp(-(g**2) / 2)
    mass /= mass.sum()
    step = 0.2
    u = np.arange(-spread * 6.5 - log(max(counts)) - 14.0, 5.0 + spread * 3, step)
    term = np.exp(np.minimum(u[:, None] + spread * g, 50.0))  # t exp(s g): (u, g)
    decay = np.exp(-term)
    below = np.cumsum(decay * mass, axis=1)  # phi of scores up to g
    phi = below[:, -1]
    tilts, overlaps = (term * decay) @ (mass * g), (term**2 * decay) @ mass
    firsts = term * decay * mass
    # The largest of the scores is g, all others are below it; half of its own cell counts.
    under = np.log(np.maximum(below - decay * mass / 2, 1e-300))
    found: list[Softmax] = []
    for count in counts:
        others = phi ** (count - 1)
        log_z = step * float((np.exp(-np.exp(u)) - phi * others).sum())
        tilt = count * step * float(others @ tilts)
        largest = count * step * float((firsts * np.exp((count - 1) * under)).sum())
        overlap = count * step * float(others @ overlaps)
        found.append(Softmax(log_z - spread * tilt, min(1.0, largest), overlap, tilt))
    return tuple(found)


def _sharpened(softmax: Softmax, ratio: float) -> Softmax:
    """Return what softmax makes of scores so far apart that one of them has nearly all of it.

    What another one takes needs it to be within about 1 of the largest, whose chance falls as
    one over the spread; the grid of the integrals would grow with the square of it.
    """
    return Softmax(
        softmax.entropy * ratio,
        1 - (1 - softmax.largest) * ratio,
        1 - (1 - softmax.overlap) * ratio,
        softmax.tilt,
    )


def _softmax_of(
    architecture: Architecture, shape: Shape, scores: Scores
) -> tuple[float, float | None] | None:
    """Return relative entropy and largest probability; None where scores are not Gaussian.

    Rotary positions make of what keys share a pattern over positions, of which only the
    variance matters while scores are close together; the largest of them is not that of
    Gaussian scores where the pattern is most of the variance.
    """
    counts, weights = _visible(architecture, shape)
    turns = [_turns(architecture, shape, n) for n in counts]
    if scores.turned * max(turns) > 0.01 * scores.own and scores.turned * max(turns) > WIDE:
        return None
    entropy = largest = 0.0
    variances = [scores.own + scores.turned * turn for turn in turns]
    same = len(set(variances)) == 1
    for size, share in _head_sizes(shape):
        found = (
            gaussian_softmax(_rounded(variances[0] * size), tuple(counts))
            if same
            else [
                gaussian_softmax(_rounded(variance * size), (n,))[0]
                for variance, n in zip(variances, counts, strict=True)
            ]
        )
        for n, weight, each in zip(counts, weights, found, strict=True):
            entropy += weight * share * each.entropy / log(n)
            largest += weight * share * each.largest
    pattern = scores.turned * max(turns) > scores.own
    return float(entropy), None if pattern else float(largest)


def _rounded(variance: float) -> float:
    """Return the root, rounded so that equal spreads are computed once."""
    return round(sqrt(variance), 6)


def _turns(architecture: Architecture, shape: Shape, count: float) -> float:
    """Return the share of what keys have in common that rotary positions vary."""
    if not architecture.rotary:
        return 0.0
    planes = _plane_variances(architecture, shape, round(count)).mean(1)
    return float(planes.sum()) * 4 / shape.head_width


def _head_sizes(shape: Shape) -> list[tuple[float, float]]:
    """Return squared sizes of a head's queries over their mean, and how often they occur."""
    nodes, weights = hermegauss(3)
    part = 2 / (9 * shape.head_width)  # Wilson and Hilferty: the cube root is Gaussian
    sizes = np.maximum(1 - part + nodes * sqrt(part), 1e-3) ** 3
    return list(zip(sizes.tolist(), (weights / weights.sum()).tolist(), strict=True))


# --- what attention and MLP return --------------------------------------------------------
def _attended(
    architecture: Architecture, shape: Shape, into: Cloud, scores: Scores
) -> tuple[Cloud, float] | None:
    """Return the weighted means of rows as a cloud, and their mean cosine.

    A query's mean has the common part, d times the overlap of its own weights, and a tilt
    towards the keys it prefers; two queries share what their common scores give. None where
    rotary positions make wide scores of what queries or keys have in common; and where wide
    scores are common to queries that see different numbers of keys, while rows have little in
    common: whether the keys that both see hold most of the weight of one says something of
    how sharp the other is, by which the cosine is up to a tenth larger than a product says.
    """
    counts, _ = _visible(architecture, shape)
    turns = np.array([_turns(architecture, shape, n) for n in counts])
    if scores.turned * max(turns) > WIDE or (architecture.rotary and scores.shared > WIDE):
        return None
    if architecture.causal and scores.shared > WIDE and into.common < into.own:
        return None
    seen = np.full(2, float(shape.tokens))  # keys that queries see; two queries stand for all
    if architecture.causal:
        seen = np.linspace(1, shape.tokens, min(shape.tokens, PAIRS))
    alone, shared = (
        _interpolate(seen, counts, gaussian_softmax(_rounded(variance), tuple(counts)))
        for variance in (scores.own, scores.shared)
    )
    still = 1 - np.interp(np.log(seen), np.log(counts), turns)
    each = into.own / shape.width
    own = into.own * alone[0] + each * still * alone[1] ** 2
    tilt = np.sqrt(each * still) * shared[1]
    # Of two queries, one sees n keys and the other m > n, n of which are the same.
    fewer, more = np.minimum.outer(seen, seen), np.maximum.outer(seen, seen)
    overlap = np.where(seen[:, None] == fewer, shared[0][:, None], shared[0][None])
    inner = into.common + into.own * overlap * fewer / more + np.outer(tilt, tilt)
    norms = np.sqrt(into.common + own)
    different = ~np.eye(len(seen), dtype=bool)
    common = float(inner[different].mean())
    cosine = float((inner / np.outer(norms, norms))[different].mean())
    return Cloud(common, max(0.0, into.common + float(own.mean()) - common)), cosine


def _interpolate(seen: Array, counts: Array, found: tuple[Softmax, ...]) -> tuple[Array, Array]:
    """Return overlap and tilt for any number of keys, from some; one key has no choice."""
    at, known = np.log(seen), np.log(np.r_[1.0, counts])
    times = np.r_[1.0, [n * each.overlap for n, each in zip(counts, found, strict=True)]]
    tilts = np.r_[0.0, [each.tilt for each in found]]
    return np.interp(at, known, times) / seen, np.interp(at, known, tilts)


def _mlp(architecture: Architecture, shape: Shape, cosine: float, energy: float) -> Cloud:
    """Return what an MLP adds to rows of energy d whose mean cosine is known."""
    variance = shape.std**2 * shape.width
    act = _silu if architecture.gated else _gelu
    # Cosines of pairs scatter by 1/sqrt(d): what is curved in them moves their mean.
    scatter = sqrt(max(0.0, 1 - cosine**2) / shape.width)
    pairs = [min(1.0, cosine + scatter), cosine - scatter]

    def product(at: float) -> float:
        return _product(act, variance, at) * (variance * at if architecture.gated else 1.0)

    together, alone = sum(map(product, pairs)) / 2, product(1.0)
    return Cloud(energy * together, energy * (alone - together))


def _product(act: Callable[[Array], Array], variance: float, cosine: float) -> float:
    """Return E act(x) act(y) of Gaussians of this variance and correlation."""
    nodes, weights = hermegauss(40)
    weights = weights / weights.sum()
    x, z = nodes[:, None] * sqrt(variance), nodes[None] * sqrt(variance)
    y = cosine * x + sqrt(max(0.0, 1 - cosine**2)) * z
    return float(weights @ (act(x) * act(y)) @ weights)


def _gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.vectorize(erf)(x / sqrt(2)))


def _silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))
