"""How often do the tests of a trajectory raise a false alarm, and what do they find?

    python bench/changes.py            every cell that is not in the results yet
    python bench/changes.py onset lead only these tests

Simulated curves over 12, 21, 30 and 154 checkpoints. Results go to bench/results/changes.json
as they come; docs/trajectory-statistics.md is written from them by bench/pages.py.
"""

import json
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from isoscope.lab.trajectory.lead import candidate_lags, lead_chances
from isoscope.lab.trajectory.onset import step_down
from isoscope.lab.trajectory.shocks import best_shocks, have_pattern, model, places
from isoscope.lab.trajectory.sudden import PLACED, chance, fit_jumps

RESULTS = Path(__file__).parent / "results" / "changes.json"
DRAWS = 1000
AT_ONCE = 50
LEVEL = 0.05
GROUPS = 32  # of documents
CHANGES = (1, 2, 4, 8)  # noise standard deviations
FOLLOWED = (0.5, 1, 2, 4)  # of its own shocks: how far one curve follows those of another
NAMED = ("ar-0.5", "ar-0.9", "walk", "sigmoid")
SIZES = {
    "lead": (30, 154),
    "together": (21, 30, 154),
    "sudden": (12, 21, 154),
    "onset": (12, 21, 154),
}
PYTHIA = [0, *(2**k for k in range(10)), *range(1000, 144_000, 1000)]
Random = np.random.Generator


# --- curves without a change -----------------------------------------------------------


def autoregressive(shocks: np.ndarray, memory: float) -> np.ndarray:
    """Return AR(1) noise, stationary from its beginning, or a random walk."""
    curves = shocks.copy()
    if memory < 1:
        curves[:, 0] /= np.sqrt(1 - memory**2)
    for i in range(1, curves.shape[1]):
        curves[:, i] += memory * curves[:, i - 1]
    return curves


def sigmoids(random: Random, at: np.ndarray, count: int, height: float, narrow: float = 1 / 16):
    """Return rises at random places; 10 to 90 % take at least 4.4 `narrow` of the curve."""
    length = at[-1] - at[0]
    middle = at[0] + random.uniform(0.2, 0.8, (count, 1)) * length
    width = np.exp(random.uniform(np.log(narrow), np.log(1 / 6), (count, 1))) * length
    return height * (0.5 + 0.5 * np.tanh((at - middle) / (2 * width)))


def steps_of(world: str, n: int) -> list[int]:
    """Return the steps of the checkpoints."""
    if world.startswith("pythia"):
        return PYTHIA
    if world == "long gaps":  # three gaps as long as ten
        gaps = np.ones(n - 1, dtype=int)
        gaps[[n // 4, n // 2, 3 * n // 4]] = 10
        return [0, *np.cumsum(gaps).tolist()]
    return list(range(n))


SMOOTH: dict[str, Callable[[Random, np.ndarray, int], np.ndarray]] = {
    "sigmoid": lambda random, t, count: sigmoids(random, t, count, 10),
    "sigmoid of height 3": lambda random, t, count: sigmoids(random, t, count, 3),
    "sigmoid of height 50": lambda random, t, count: sigmoids(random, t, count, 50),
    "sigmoid of height 500": lambda random, t, count: sigmoids(random, t, count, 500),
    "two sigmoids": lambda random, t, count: (
        sigmoids(random, t, count, 10, 1 / 30) + sigmoids(random, t, count, -8, 1 / 30)
    ),
    "logarithm": lambda random, t, count: random.uniform(2, 10, (count, 1)) * np.log1p(t),
    "power law": lambda random, t, count: (
        random.uniform(5, 30, (count, 1)) * (1 + t) ** -random.uniform(0.2, 1, (count, 1))
    ),
    "long gaps": lambda random, t, count: sigmoids(random, t, count, 10),
    "pythia": lambda random, t, count: sigmoids(random, np.log1p(t), count, 10),
}


def louder(shocks: np.ndarray) -> np.ndarray:
    """Return shocks that are 7 times as large at the beginning as at the end."""
    n = shocks.shape[1]
    return 3 * np.exp(-2 * np.arange(n) / n) * shocks


def waves(random: Random, count: int, n: int) -> np.ndarray:
    """Return AR(2) noise with a period of about 11 checkpoints."""
    long = random.normal(size=(count, n + 50))
    for i in range(2, n + 50):
        long[:, i] += 1.3 * long[:, i - 1] - 0.6 * long[:, i - 2]
    return long[:, 50:]


def heavy(random: Random, shocks: np.ndarray) -> np.ndarray:
    """Return shocks of Student's t with three degrees of freedom."""
    return random.standard_t(3, size=shocks.shape)


NOISES: dict[str, Callable[[Random, np.ndarray], np.ndarray]] = {
    "walk": lambda random, e: e.cumsum(axis=1),
    "sigmoid with ar-0.7": lambda random, e: (
        sigmoids(random, np.arange(e.shape[1]), len(e), 10) + autoregressive(e, 0.7)
    ),
    "noise that falls": lambda random, e: louder(e),
    "walk whose noise falls": lambda random, e: louder(e).cumsum(axis=1),
    "heavy tails": heavy,
    "heavy tails, ar-0.7": lambda random, e: autoregressive(heavy(random, e), 0.7),
    "waves": lambda random, e: waves(random, *e.shape),
}


def curves_of(world: str, random: Random, count: int, n: int, shocks=None) -> np.ndarray:
    """Return curves of a world, none of which has a jump; shocks are drawn unless given."""
    steps = np.array(steps_of(world, n), dtype=float)
    shocks = random.normal(size=(count, len(steps))) if shocks is None else shocks
    if world in SMOOTH:
        return SMOOTH[world](random, steps, count) + shocks
    if world in NOISES:
        return NOISES[world](random, shocks)
    return autoregressive(shocks, float(world.removeprefix("ar-")))


OTHERS = (
    *(world for world in SMOOTH if world not in {"sigmoid", "pythia"}),
    *(world for world in NOISES if world != "walk"),
)


# --- the tests -------------------------------------------------------------------------


def onset(world: str, n: int, change: float, random: Random, count: int) -> dict[str, int]:
    """Return alarms before a change, and what was found of one in the middle.

    Noise is what documents add: each group has a curve of its own. A sigmoid begins in the
    middle and rises smoothly by `change` standard errors, or by 4 where none is planted.
    """
    tally = {"alarms": 0, "found": 0, "near": 0}
    middle = n // 2
    rises = world == "sigmoid"
    grown = np.zeros(n)
    if rises:
        up = np.clip((np.arange(n) - middle + 1) / (n / 3), 0, 1)
        grown = (change or 4.0) * (0.5 - 0.5 * np.cos(np.pi * up))
    elif change:
        grown[middle:] = change
    for _ in range(count):
        kind = "ar-0.9" if rises else world
        said = curves_of(kind, random, GROUPS, n)
        apart = (said - said[:, :1])[:, 1:].T  # (steps - 1, groups)
        scale = apart.std(axis=1, ddof=1)[:, None] / np.sqrt(GROUPS)
        p = np.array(step_down(apart + grown[1:, None] * scale))
        first = int(np.argmax(p <= LEVEL)) + 1 if (p <= LEVEL).any() else None
        begins = middle if change or rises else n
        tally["alarms"] += first is not None and first < begins
        tally["found"] += first is not None and first >= begins
        tally["near"] += first is not None and abs(first - begins) <= 1
    return tally


def sudden(world: str, n: int, change: float, random: Random, count: int) -> dict[str, int]:
    """Return how often a jump was found, near its place, and inside its interval."""
    steps = steps_of(world, n)
    at = places(steps)
    of = model(at)
    tally = {"found": 0, "near": 0, "held": 0, "wide": 0}
    for start in range(0, count, AT_ONCE):
        size = min(AT_ONCE, count - start)
        curves = curves_of(world, random, size, n)
        after = random.integers(3, len(steps) - 2, size)
        curves += change * (np.arange(len(steps)) >= after[:, None])
        fits = fit_jumps(of, curves)
        found = np.array(chance(at, fits)) <= LEVEL
        best = fits.profile.max(axis=1, keepdims=True)
        likely = fits.profile >= best - PLACED
        low = likely.argmax(axis=1) + 2
        high = likely.shape[1] - 1 - likely[:, ::-1].argmax(axis=1) + 2
        near = np.abs(fits.profile.argmax(axis=1) + 2 - after) <= 1
        tally["found"] += int(found.sum())
        tally["near"] += int((found & near).sum())
        tally["held"] += int((found & (low <= after) & (after <= high)).sum())
        tally["wide"] += int((found * (high - low + 1)).sum())
    return tally


def pairs(world: str, n: int, change: float, random: Random, count: int, lag: int):
    """Return two sets of curves; a change is how far the second follows shocks of the first.

    A world may be two, one for each curve; an event is a single fall in both.
    """
    first, _, second = world.partition(" · ")
    second = second or first
    length = len(steps_of(first, n))
    a, b = random.normal(size=(2, count, length + lag))
    b[:, lag:] += change * a[:, :length]
    return (
        curves_of(first, random, count, n, a[:, lag:]),
        curves_of(second, random, count, n, b[:, lag:]),
    )


def shared(name: str, world: str, n: int, change: float, random: Random, count: int):
    """Return how often curves are associated, or one leads, and how often there is no p."""
    kind, _, inner = world.partition(": ")
    world = inner or world
    lag = {"at once": 0, "the other leads": 1}.get(kind, int(name == "lead"))
    of = model(places(steps_of(world.partition(" · ")[0], n)))
    a, b = pairs(world, n, change, random, count, lag)
    if kind == "the other leads":
        a, b = b, a
    if kind == "event":
        a, b = pairs(world, n, 0.0, random, count, lag)
        after = random.integers(n // 4, 3 * n // 4, count)[:, None]
        a = a - change * (np.arange(n) >= after)
        b = b - change * (np.arange(n) >= after + lag)
    a, b = (
        np.concatenate([best_shocks(of, c[i : i + AT_ONCE]) for i in range(0, count, AT_ONCE)])
        for c in (a, b)
    )
    silent = have_pattern(a) | have_pattern(b)
    lags = candidate_lags(n) if name == "lead" else [0]
    found = ~silent & (lead_chances(a, b, lags) <= LEVEL)
    return {"found": int(found.sum()), "silent": int(silent.sum())}


# --- cells -----------------------------------------------------------------------------


def cells() -> Iterator[tuple[str, str, int, float]]:
    """Yield test, world, number of checkpoints and change of every cell."""
    runs = [(test, n) for test, sizes in SIZES.items() for n in sizes]
    yield from ((test, world, n, 0) for test, n in runs for world in NAMED)
    for test, n in runs:
        changes = CHANGES if test in {"onset", "sudden"} else FOLLOWED
        named = [(world, change) for world in NAMED for change in changes]
        yield from ((test, world, n, change) for world, change in named)
    for test, n in runs:
        yield from ((test, world, n, change) for world, change in more_cells(test, n))


def more_cells(test: str, n: int) -> list[tuple[str, float]]:
    """Return worlds and changes beyond those that every test has."""
    if test == "onset":
        return []
    found = [(world, 0.0) for world in (*OTHERS, *(("pythia",) if n == 154 else ()))]
    if test != "sudden":
        found += [("walk · sigmoid", 0.0), *(("event: walk", change) for change in (2, 4, 8))]
    if test == "lead":
        kinds = ("at once", "the other leads")
        found += [(f"{k}: {w}", 2.0) for k in kinds for w in ("ar-0.5", "walk", "sigmoid")]
    return found


def run(test: str, world: str, n: int, change: float, draws: int) -> dict[str, int]:
    """Return what one cell found."""
    random = np.random.default_rng(zlib.crc32(f"{test} {world} {n} {change}".encode()))
    if test == "onset":
        return onset(world, n, change, random, draws)
    if test == "sudden":
        return sudden(world, n, change, random, draws)
    return shared(test, world, n, change, random, draws)


def main(tests: list[str]) -> None:
    """Run every cell that is missing, and save after each."""
    done = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    known = {(each["test"], each["world"], each["n"], each["change"]) for each in done}
    for test, world, n, change in cells():
        if (test, world, n, change) in known or (tests and test not in tests):
            continue
        found = run(test, world, n, change, DRAWS)
        cell = {"test": test, "world": world, "n": n, "change": change, "draws": DRAWS}
        done.append({**cell, **found})
        print(done[-1], flush=True)
        beside = RESULTS.with_suffix(".new")
        beside.write_text("[\n" + ",\n".join(map(json.dumps, done)) + "\n]\n")
        beside.replace(RESULTS)


if __name__ == "__main__":
    main(sys.argv[1:])
