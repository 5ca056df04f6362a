"""Planted worlds of tokens whose causes are known exactly, written from the definition alone.

A unit row is u = z a + sqrt(1 - |z a|^2) g. Here `a` depends only on the token's group and on
the position, the scatter z has mean 1, and g is a unit vector orthogonal to the planted axes,
as likely as -g whatever the topics of the document. So E[u | group, position] = a without
approximation, and every population value is a finite sum over positions and groups. Norms
multiply unit rows and decide only which rows are sinks.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

EDGES = (1e-5, 1e-4, 1e-3, 1e-2)  # of frequency bands
FREQUENCY_BANDS = len(EDGES) + 1
POSITION_BANDS = 16  # 0, 1, 2-3, 4-7, ...; the last begins at 16,384
COMMON, MIDDLING, RARE = 0.05, 5.5e-3, 5.5e-4  # shares of one token, far from the edges


def frequency_band(share):
    return np.searchsorted(EDGES, share, side="right")


def position_band(position):
    starts = 2 ** np.arange(POSITION_BANDS - 1)
    return np.searchsorted(starts, position, side="right")


class Rows(NamedTuple):
    """What an estimator gets."""

    rows: np.ndarray  # (n, d) float32
    document: np.ndarray  # (n,)
    position: np.ndarray  # (n,)
    token: np.ndarray  # (n,)


class Parts(NamedTuple):
    """One cause beside the other, as parts of T_FP."""

    first: float
    last: float
    shapley: float


@dataclass(frozen=True)
class Population:
    """Population values; all but `sinks` are of the rows that are no sinks."""

    C: float
    T_F: float
    T_P: float
    T_FP: float
    alone: dict[str, float]  # dependence of frequency, position and both
    parts: dict[str, Parts]  # of frequency and position
    contributions: dict[str, np.ndarray]  # per band, 0 where a band is empty
    sinks: float  # 1 - C(without sinks) / C(all rows)
    dimensions: tuple[int, ...]
    dimensions_share: float
    falls_to: float  # the mean cosine when the dimensions are zeroed


def independent_norms(rng, group, position):
    """Norms up to 9 times the smallest, so that no row becomes a sink."""
    return np.exp(rng.uniform(0, np.log(9), len(group)))


@dataclass(frozen=True)
class World:
    """One law of rows: P positions, G groups of equally frequent tokens, k planted axes."""

    name: str
    lengths: np.ndarray  # chance of each length, from 0 to P
    tokens: np.ndarray  # (G,) number of tokens of each group
    chances: np.ndarray  # (P, G) chance of each group at a position
    means: np.ndarray  # (P, G, k) mean of unit rows on the axes
    scatter: float = 0.2  # z is uniform on 1 - scatter .. 1 + scatter
    topics: tuple[float, float, float] = (0.5, 0.0, 0.0)  # of document, its groups, its bands
    norms: Callable = independent_norms
    sinks: int = 0  # the first positions of a document are sinks
    loads: np.ndarray = field(default_factory=lambda: np.zeros(0))  # of axis 0 on dimensions
    quiet: bool = False  # the planted dimensions hold nothing but axis 0

    def __post_init__(self):
        longest = np.linalg.norm(self.means, axis=2).max() * (1 + self.scatter)
        assert longest <= 1 + 1e-12, f"unit rows cannot have a part of length {longest}"
        assert np.allclose(self.chances.sum(1), 1) and np.isclose(self.lengths.sum(), 1)
        # Zeroing is exact only if what is left of a row has a known length or no mean.
        assert (
            not len(self.loads) or (self.quiet and not self.scatter) or self.means.shape[2] == 1
        )

    def occupancy(self):
        """Share of all rows at each position and group, (P, G)."""
        at = self.lengths[::-1].cumsum()[::-1][1:]  # chance of length > position
        return (at / at.sum())[:, None] * self.chances

    def shares(self):
        """Share of one token of each group, (G,)."""
        return self.occupancy().sum(0) / self.tokens

    def token_shares(self):
        """Share of every token id; ids are not in the order of frequency."""
        return np.repeat(self.shares(), self.tokens)[np.argsort(self.token_ids())]

    def token_ids(self):
        """Token ids, group by group."""
        return np.random.default_rng(7).permutation(self.tokens.sum())

    def dimensions(self, width):
        """The planted dimensions, spread over the width."""
        count = len(self.loads)
        return tuple(int((i + 0.5) * width / count) for i in range(count))

    def axes(self, width):
        """Orthonormal planted axes (k, d): axis 0 on the dimensions, others spread over all."""
        rng = np.random.default_rng(width)
        axes = rng.choice([-1.0, 1.0], (self.means.shape[2], width))
        dimensions = list(self.dimensions(width))
        if dimensions:
            axes[:, dimensions] = 0
            axes[0] = 0
            axes[0, dimensions] = self.loads
        q, r = np.linalg.qr(axes.T)
        return (q * np.sign(np.diag(r))).T


def fewest_rows(world, deviations=5.0):
    """Rows from which observed counts put every token in its true band.

    Every count is then so many standard deviations away from both edges of its band.
    """
    edges = np.array([0, *EDGES, np.inf])
    share = world.shares()
    band = frequency_band(share)
    room = np.minimum(share - edges[band], edges[band + 1] - share)
    return int(np.ceil((deviations**2 * share / room**2).max()))


def draw(world, documents, width, seed):
    """Rows of that many documents; `seed` is a seed or a generator."""
    rng = np.random.default_rng(seed)
    length = rng.choice(len(world.lengths), documents, p=world.lengths)
    document = np.repeat(np.arange(documents), length)
    position = np.arange(len(document)) - np.repeat(length.cumsum() - length, length)
    steps = world.chances.cumsum(1)[position, :-1]
    group = (rng.random(len(document))[:, None] >= steps).sum(1)
    within = rng.integers(world.tokens[group])
    token = world.token_ids()[(world.tokens.cumsum() - world.tokens)[group] + within]

    axes = world.axes(width).astype(np.float32)
    z = rng.uniform(1 - world.scatter, 1 + world.scatter, (len(document), 1))
    part = z * world.means[position, group]  # (n, k)
    rest = np.sqrt(np.maximum(0, 1 - (part**2).sum(1, keepdims=True)))
    noise = residual(world, rng, document, group, position, axes)
    norm = world.norms(rng, group, position)
    norm[position < world.sinks] *= 1000
    rows = norm[:, None] * (part @ axes + rest * noise)
    return Rows(rows.astype(np.float32), document, position, token)


def residual(world, rng, document, group, position, axes):
    """Unit vectors orthogonal to the axes, alike within documents, of mean zero."""
    width = axes.shape[1]

    def normal(n):
        return rng.standard_normal((n, width), np.float32) / np.float32(np.sqrt(width))

    vectors = normal(len(document))
    documents = document[-1] + 1
    groups = len(world.tokens)
    keys = (document, document * groups + group)
    keys = (*keys, document * POSITION_BANDS + position_band(position))
    counts = (documents, documents * groups, documents * POSITION_BANDS)
    for strength, key, count in zip(world.topics, keys, counts, strict=True):
        if strength:
            vectors += np.float32(strength) * normal(count)[key]
    if world.quiet:
        vectors[:, list(world.dimensions(width))] = 0
    vectors -= (vectors @ axes.T) @ axes
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def agreement(weights, means, cells):
    """T = sum of w_c |m_c|^2, with the weight w_c and the sum w_c m_c of every cell."""
    names, index = np.unique(cells.ravel(), return_inverse=True)
    w = np.bincount(index, weights.ravel(), len(names))
    sums = np.zeros((len(names), means.shape[2]))
    np.add.at(sums, index, (weights[..., None] * means).reshape(-1, means.shape[2]))
    used = w > 0
    total = (sums[used] ** 2).sum(1) / w[used]
    return total.sum() / w.sum(), names, sums / w.sum()


def zeroed_means(world):
    """Means of unit rows after the planted dimensions are zeroed, (P, G, k)."""
    means = world.means.copy()
    if len(world.loads):
        means[..., 1:] /= np.sqrt(1 - means[..., :1] ** 2)
        means[..., 0] = 0
    return means


def population(world, width):
    """The values of the definition, exact but for rounding."""
    every = world.occupancy()
    weights = every.copy()
    weights[: world.sinks] = 0
    shape = every.shape
    bands = {
        "frequency": np.broadcast_to(frequency_band(world.shares()), shape),
        "position": np.broadcast_to(position_band(np.arange(shape[0]))[:, None], shape),
    }
    whole = np.zeros(shape, int)
    crossed = bands["frequency"] * POSITION_BANDS + bands["position"]
    C, _, (m,) = agreement(weights, world.means, whole)
    T, contributions = {}, {}
    sizes = {"frequency": FREQUENCY_BANDS, "position": POSITION_BANDS}
    for cause, cells in bands.items():
        T[cause], names, sums = agreement(weights, world.means, cells)
        contributions[cause] = np.zeros(sizes[cause])
        contributions[cause][names] = sums @ m / C
    both, _, _ = agreement(weights, world.means, crossed)
    parts = {}
    for cause, other in (("frequency", "position"), ("position", "frequency")):
        first, last = (T[cause] - C) / both, (both - T[other]) / both
        parts[cause] = Parts(float(first), float(last), float((first + last) / 2))
    dimensions = world.dimensions(width)
    squares = (m @ world.axes(width)) ** 2
    return Population(
        C=float(C),
        T_F=float(T["frequency"]),
        T_P=float(T["position"]),
        T_FP=float(both),
        alone={k: float(1 - C / t) for k, t in {**T, "both": both}.items()},
        parts=parts,
        contributions=contributions,
        sinks=float(1 - C / agreement(every, world.means, whole)[0]),
        dimensions=dimensions,
        dimensions_share=float(squares[list(dimensions)].sum() / squares.sum()),
        falls_to=float(agreement(weights, zeroed_means(world), whole)[0]),
    )


def fixed_length(length):
    return np.eye(length + 1)[length]


def pareto_lengths(shortest, longest, exponent):
    """Lengths with P(length >= l) proportional to l^-exponent, cut off at the longest."""
    length = np.arange(longest + 1)
    chance = np.zeros(longest + 1)
    kept = length[shortest:]
    chance[shortest:] = kept**-exponent - (kept + 1.0) ** -exponent
    return chance / chance.sum()


def vocabulary(chances, lengths, shares):
    """Numbers of tokens that bring the share of one token near `shares`."""
    at = lengths[::-1].cumsum()[::-1][1:]
    return np.maximum(1, np.rint((at / at.sum()) @ chances / shares)).astype(int)


def pareto_norms(rng, group, position):
    """Norms of infinite variance: by chance, 1.6 % of rows are sinks, in any direction."""
    return 1 + rng.pareto(1.5, len(group))


def norms_of_groups(rng, group, position):
    """Rarer groups are four times as long."""
    return np.where(group == 0, 1, 4) * rng.uniform(1, 2, len(group))


def norms_of_positions(rng, group, position):
    """Rows get longer along the document."""
    return 1 + 7 * position / 128


def outside_cone(share, length=64):
    """A share of the rows, all of rare tokens, lies outside the cone of all others.

    Frequency alone reads exactly that share, and the other two bands do not differ.
    """
    chance = np.array([(1 - share) * 0.6, (1 - share) * 0.4, share])
    chances = np.tile(chance, (length, 1))
    lengths = fixed_length(length)
    means = np.zeros((length, 3, 1))
    means[:, :2] = 0.7
    tokens = vocabulary(chances, lengths, (COMMON, MIDDLING, RARE))
    name = f"outside-cone-{share}"
    return World(name, lengths, tokens, chances, means, norms=pareto_norms)


def confounded(acting, length=64, early=16):
    """Frequent tokens stand mostly early, and only `acting` (frequency or position) acts.

    The other cause seems to act when it is known alone or first, and has nothing as the last.
    """
    begins = np.arange(length)[:, None] < early
    chances = np.where(begins, [0.9, 0.1], [0.2, 0.8])
    lengths = fixed_length(length)
    acts = {"frequency": np.array([[True, False]]), "position": begins}[acting]
    means = np.full((length, 2, 2), 0.4)
    means[..., 1] = np.where(acts, 0.6, 0.0)
    tokens = vocabulary(chances, lengths, (COMMON, MIDDLING))
    name = f"confounded-{acting}"
    return World(name, lengths, tokens, chances, means, norms=norms_of_groups)


def sign_change(period=256, crossed=False, length=128):
    """The effect of position is a cosine that cancels over the document; little mean is left.

    With a period of two documents, bands see it and contributions exceed 100 % by far; with a
    period of 8 positions, it cancels within the bands. Crossed, it has opposite signs for the
    two groups: neither cause does anything alone, both together nearly everything.
    """
    chances = np.full((length, 2), 0.5)
    lengths = fixed_length(length)
    wave = 0.65 * np.cos(2 * np.pi * (np.arange(length) + 0.5) / period)
    sign = np.array([1, -1]) if crossed else np.ones(2)
    means = (0.1 + wave[:, None] * sign)[..., None]
    tokens = vocabulary(chances, lengths, (COMMON, MIDDLING))
    name = f"sign-change-{period}" + "-crossed" * crossed
    return World(name, lengths, tokens, chances, means, norms=norms_of_positions)


def eight_dimensions(length=48):
    """Eight equal dimensions, of either sign and with noise of their own, carry all of C."""
    chances = np.full((length, 2), 0.5)
    lengths = fixed_length(length)
    tokens = vocabulary(chances, lengths, (COMMON, MIDDLING))
    loads = np.tile([1, -1], 4) / np.sqrt(8)
    means = np.full((length, 2, 1), 0.6)
    return World("eight-dimensions", lengths, tokens, chances, means, loads=loads)


def three_dimensions(share=0.97, fall=0.77, length=48):
    """Three huge dimensions carry `share` of C, yet zeroing them takes only `fall` of C away.

    What is left of a row has length s and mean direction c nu. So C' = c^2, and the part of C
    outside the dimensions is (1 - share) C = c^2 E[s]^2, which gives E[s]. The dimensions are
    larger in frequent tokens, so they also carry the effect of frequency.
    """
    chances = np.full((length, 2), 0.5)
    lengths = fixed_length(length)
    mean = np.sqrt((1 - share) / (1 - fall))
    s = mean * np.array([0.7, 1.3])
    on_dimensions = np.sqrt(1 - s**2)
    c = np.sqrt((1 - fall) / share) * on_dimensions.mean()
    means = np.tile(np.stack([on_dimensions, c * s], axis=1), (length, 1, 1))
    tokens = vocabulary(chances, lengths, (COMMON, MIDDLING))
    loads = np.array([0.8, -0.5, np.sqrt(0.11)])
    name = "three-dimensions"
    return World(name, lengths, tokens, chances, means, scatter=0.0, loads=loads, quiet=True)


def topics_only(sinks=True):
    """Strong topics of documents, of their groups and of their bands; no cause at all.

    Lengths are Pareto from 8 to 512. The first two rows of a document may be sinks of opposite
    directions: they thin the shared mean out, so that their share of C is negative.
    """
    lengths = pareto_lengths(8, 512, 1.1)
    chances = np.tile([0.5, 0.4, 0.1], (512, 1))
    tokens = vocabulary(chances, lengths, (COMMON, MIDDLING, RARE))
    means = np.tile([0.5, 0.0], (512, 3, 1))
    if sinks:
        means[0] = [0.0, 0.9]
        means[1] = [0.0, -0.9]
    topics = (1.5, 0.7, 0.7)
    name = "topics-sinks" if sinks else "topics"
    return World(
        name, lengths, tokens, chances, means, scatter=0.1, topics=topics, sinks=2 * sinks
    )


WORLDS = {
    world.name: world
    for world in (
        *(outside_cone(share) for share in (0.049, 0.052, 0.3)),
        *(confounded(acting) for acting in ("frequency", "position")),
        sign_change(),
        sign_change(period=8),
        sign_change(crossed=True),
        eight_dimensions(),
        three_dimensions(),
        topics_only(sinks=False),
        topics_only(),
    )
}


def main():
    for name, world in WORLDS.items():
        print(f"{name}: at least {fewest_rows(world)} rows for observed bands")
        for key, value in vars(population(world, 768)).items():
            print(f"  {key}: {value}")


if __name__ == "__main__":
    main()
