"""Do the intervals cover, and are the debiased readings unbiased? Simulated collections.

    python bench/simulate.py bias        debiased IsoScore against the truth
    python bench/simulate.py documents   how often intervals hold the population value
    python bench/simulate.py rows        the same for independent rows
    python bench/simulate.py differences how often intervals of differences hold the true zero

Is resumed where it stopped; designs of older code are run again. Results go to
bench/results/*.json as they come; docs/statistics.md is written from them.
"""

import json
import sys
import zlib
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from time import monotonic

import numpy as np

from isoscope.measures.difference import difference_by_group, independent_difference
from isoscope.measures.effective_rank import entropy_rank
from isoscope.measures.participation import ratio
from isoscope.study.lanes import run
from isoscope.study.reading import Spreads, kinds_for, read_survey
from isoscope.types import Chunk

RESULTS = Path(__file__).parent / "results"
PLACE = ("rows", "all")
FIRST_SEED = 4_100_000
CODE = 48  # the last decision (docs/adr) that moved what is simulated here
EVERY = 20  # seconds between two savings of draws
LIKENESS = 0.9  # correlation of the rows of two models that read the same texts
NAMES = ("mean-cosine-cross", "isoscore-debiased", "effective-rank-debiased")


@dataclass(frozen=True)
class Design:
    """One kind of collection: where its rows come from and how they hang together."""

    d: int
    power: float  # eigenvalue i is i^-power
    documents: int = 0  # 0: independent rows
    rows: int = 0  # of independent rows
    rho: float = 0.3
    offset: float = 0.8  # length of the mean over the root of the trace
    scales: str = "normal"  # or "lognormal": every row has a length of its own
    tokens: tuple[int, int] = (20, 100)

    @property
    def name(self) -> str:
        """A short name for tables."""
        rows = f"{self.documents} documents" if self.documents else f"{self.rows} rows"
        return f"d={self.d} {rows} i^-{self.power:g} {self.scales}"

    @property
    def spectrum(self) -> np.ndarray:
        """The population's eigenvalues."""
        return np.arange(1, self.d + 1, dtype=float) ** -self.power

    @property
    def mean(self) -> np.ndarray:
        """The population's mean: in a direction that is neither an axis nor random."""
        direction = np.sin(np.arange(self.d) * 1.3) + 0.4
        length = self.offset * np.sqrt(self.spectrum.sum())
        return direction / np.linalg.norm(direction) * length

    @cached_property
    def root(self) -> np.ndarray:
        """A root of the population's covariance, whose eigenvectors are not the axes."""
        basis = np.linalg.qr(np.random.default_rng(self.d).standard_normal((self.d, self.d)))[0]
        return (np.sqrt(self.spectrum)[:, None] * basis.T).astype(np.float32)

    def placed(self, noise: np.ndarray) -> np.ndarray:
        """Return rows of the population from white noise."""
        return noise.astype(np.float32) @ self.root + self.mean.astype(np.float32)

    def sizes(self, rng: np.random.Generator) -> np.ndarray:
        """Return the documents' lengths: many short ones, few long ones."""
        low, high = self.tokens
        drawn = np.exp(rng.uniform(np.log(low), np.log(high + 1), self.documents))
        return np.clip(drawn.astype(int), low, high)

    def draw_pair(self, rng: np.random.Generator, likeness: float) -> tuple:
        """Return two collections of the same documents whose populations are the same.

        Rows of the two correlate by the likeness given, as those of two models do.
        """
        rows, documents = self.rows, None
        if self.documents:
            documents = np.repeat(np.arange(self.documents), self.sizes(rng))
            rows = len(documents)

        def noise() -> np.ndarray:
            own = rng.standard_normal((rows, self.d))
            if documents is None:
                return own
            shared = rng.standard_normal((self.documents, self.d))[documents]
            return np.sqrt(self.rho) * shared + np.sqrt(1 - self.rho) * own

        common = noise()
        pair = [
            self.placed(np.sqrt(likeness) * common + np.sqrt(1 - likeness) * noise())
            for _ in range(2)
        ]
        return *pair, documents

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
        """Return rows and, where there are any, their documents."""
        if not self.documents:
            noise = rng.standard_normal((self.rows, self.d))
            if self.scales == "lognormal":
                length = rng.lognormal(0, 0.5, self.rows)
                noise *= (length / np.exp(0.25))[:, None]  # of mean square one
            return self.placed(noise), None
        document = np.repeat(np.arange(self.documents), self.sizes(rng))
        shared = rng.standard_normal((self.documents, self.d))[document]
        own = rng.standard_normal((len(document), self.d))
        noise = np.sqrt(self.rho) * shared + np.sqrt(1 - self.rho) * own
        return self.placed(noise), document

    def truth(self) -> dict[str, float]:
        """Return the population's values; the mean cosine from many independent rows."""
        rng = np.random.default_rng(987_654_321)
        total, count = np.zeros(self.d), 0
        while count < 2_000_000:
            rows = self.placed(rng.standard_normal((50_000, self.d), dtype=np.float32))
            rows = rows.astype(np.float64)
            total += (rows / np.linalg.norm(rows, axis=1)[:, None]).sum(axis=0)
            count += len(rows)
        cosine = (total @ total - count) / (count * (count - 1))
        return {
            "mean-cosine-cross": float(cosine),
            "isoscore-debiased": (ratio(self.spectrum) - 1) / (self.d - 1),
            "effective-rank-debiased": entropy_rank(self.spectrum),
        }


def measured(design: Design, seed: int, names=NAMES) -> dict[str, tuple[float, float, float]]:
    """Return value, low and high of each measure on one collection of the design."""
    rng = np.random.default_rng([seed, zlib.crc32(design.name.encode())])
    rows, documents = design.draw(rng)
    chunk = Chunk(rows, f"collection-{seed}", 0, documents=documents)
    survey, _ = run([chunk], PLACE, kinds_for(names), seed=seed)
    return {r.measure: (r.value, r.low, r.high) for r in read_survey(survey, names)[0]}


# --- what is drawn again and again, and what is made of all draws ----------------------------

Draw = dict[str, tuple[float, ...]]  # by measure


def coverage_of(design: Design, draws: list[Draw]) -> dict:
    """Return how often each interval holds the truth, and its width over an oracle's."""
    truth, found = design.truth(), {}
    for name in NAMES:
        value, low, high = np.array([draw[name] for draw in draws], dtype=float).T
        found[name] = {
            "truth": truth[name],
            "mean": float(value.mean()),
            "sd": float(value.std(ddof=1)),
            "covered": float(((low <= truth[name]) & (truth[name] <= high)).mean()),
            "width over oracle": float(np.median(high - low) / (2 * 1.96 * value.std(ddof=1))),
        }
    return {"of": found}


def compared(design: Design, seed: int) -> Draw:
    """Return the difference of one pair of collections, its two intervals and its chance."""
    rng = np.random.default_rng([seed, zlib.crc32(design.name.encode()), 2])
    *pair, documents = design.draw_pair(rng, LIKENESS)
    readings, spreads = [], []
    for rows in pair:
        chunk = Chunk(rows, "texts", 0, documents=documents)
        survey, _ = run([chunk], PLACE, kinds_for(NAMES))
        kept: Spreads = {}
        found = read_survey(survey, NAMES, spreads=kept)[0]
        readings.append({each.measure: each for each in found})
        spreads.append({measure: each for (*_, measure), each in kept.items()})
    drawn: Draw = {}
    for name in NAMES:
        a, b = (each[name] for each in readings)
        both = tuple(each[name] for each in spreads)
        together = difference_by_group(a.value, b.value, both)
        alone = independent_difference(a.value, b.value, ((a.low, a.high), (b.low, b.high)))
        gaps = (together.low, together.high, alone.low, alone.high)
        drawn[name] = (together.value, *gaps, together.p)
    return drawn


def differences_of(_design: Design, draws: list[Draw]) -> dict:
    """Return how often intervals of a difference hold zero, which it is, and how wide."""
    found = {}
    for name in NAMES:
        columns = np.array([draw[name] for draw in draws], dtype=float).T
        value, low, high, wide_low, wide_high, chance = columns
        found[name] = {
            "covered": float(((low <= 0) & (high >= 0)).mean()),
            "covered, independent": float(((wide_low <= 0) & (wide_high >= 0)).mean()),
            "width over oracle": float(np.median(high - low) / (2 * 1.96 * value.std(ddof=1))),
            "width over independent": float(np.median((high - low) / (wide_high - wide_low))),
            "chance below 0.01": float((chance < 0.01).mean()),
        }
    return {"likeness": LIKENESS, "of": found}


def scored(design: Design, seed: int) -> Draw:
    """Return plain and debiased IsoScore of one collection."""
    return measured(design, seed, ("isoscore", "isoscore-debiased"))


def bias_of(design: Design, draws: list[Draw]) -> dict:
    """Return the mean of plain and debiased IsoScore against the truth."""
    values = {name: np.array([draw[name][0] for draw in draws]) for name in draws[0]}
    return {
        "truth": (ratio(design.spectrum) - 1) / (design.d - 1),
        **{name: float(value.mean()) for name, value in values.items()},
        "sd": float(values["isoscore-debiased"].std(ddof=1)),
    }


WORK = {  # one draw, and what is made of all of them
    "bias": (scored, bias_of),
    "documents": (measured, coverage_of),
    "rows": (measured, coverage_of),
    "differences": (compared, differences_of),
}


def simulated(what: str, design: Design, draws: list[Draw]) -> dict:
    """Return the record of a design."""
    record = {"design": asdict(design), "name": design.name, "repetitions": len(draws)}
    return record | {"code": CODE} | WORK[what][1](design, draws)


def simulate(what: str, design: Design, repetitions: int, first_seed: int) -> dict:
    """Return the record of a design that is drawn so often."""
    draw = WORK[what][0]
    draws = [draw(design, seed) for seed in range(first_seed, first_seed + repetitions)]
    return simulated(what, design, draws)


BIAS = [
    (Design(768, 0.0, rows=128), 50),
    (Design(768, 0.5, rows=128), 50),
    (Design(768, 0.0, rows=128, scales="lognormal"), 200),
    (Design(768, 0.5, rows=128, scales="lognormal"), 200),
    (Design(768, 0.0, documents=100, tokens=(50, 50)), 50),
    (Design(768, 0.5, documents=100, tokens=(50, 50)), 50),
]
DOCUMENTS = [
    Design(d, power, documents=documents)
    for d in (64, 384)
    for power in (0.5, 1.0)
    for documents in (100, 400)
]
PAIRS = [
    *(
        Design(64, power, documents=documents)
        for power in (0.5, 1.0)
        for documents in (50, 100, 400)
    ),
    *(Design(64, power, rows=6400) for power in (0.5, 1.0)),
]
ROWS = [
    Design(d, power, rows=times * d)
    for d in (64, 384)
    for power in (0.5, 1.0)
    for times in (2, 10, 100)
]


def jobs_of(what: str) -> list[tuple[Design, int]]:
    """Return designs with how often they are drawn, the cheapest first."""
    designs = {"documents": DOCUMENTS, "rows": ROWS, "differences": PAIRS}.get(what, [])
    jobs = BIAS if what == "bias" else [(design, 400) for design in designs]
    return sorted(jobs, key=lambda job: job[0].d * (job[0].rows + 50 * job[0].documents))


def main() -> None:
    """Run what was asked for; go on where an earlier run stopped, also within a design."""
    what = sys.argv[1]
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{what}.json"
    begun = path.with_suffix(".begun.json")  # the draws of a design that is not done
    records = json.loads(path.read_text()) if path.exists() else []
    known = {each["name"] for each in records if each.get("code") == CODE}
    for design, repetitions in jobs_of(what):
        if design.name in known:
            continue
        kept = json.loads(begun.read_text()) if begun.exists() else {}
        same = (kept.get("name"), kept.get("code")) == (design.name, CODE)
        draws = kept["draws"] if same else []
        saved = monotonic()
        for seed in range(FIRST_SEED + len(draws), FIRST_SEED + repetitions):
            draws.append(WORK[what][0](design, seed))
            if monotonic() - saved > EVERY:
                write(begun, {"name": design.name, "code": CODE, "draws": draws})
                saved = monotonic()
        found = simulated(what, design, draws)
        names = [each["name"] for each in records]
        place = names.index(design.name) if design.name in names else len(names)
        records[place : place + 1] = [found]
        write(path, records)
        begun.unlink(missing_ok=True)
        print(json.dumps(found), flush=True)


def write(path: Path, found: object) -> None:
    """Write results, all or nothing."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1 if isinstance(found, list) else None) + "\n")
    part.replace(path)


if __name__ == "__main__":
    main()
