"""The worker of `isoscope nursery ablate`: a cell is trained, then its trajectory measured."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter

import msgspec
import torch

from isoscope.accumulate.survey import Survey
from isoscope.display import READINGS, Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import ConfigError
from isoscope.lab.nursery.ablate_spec import AblatePlan, AblateSpec, AblationCell
from isoscope.lab.nursery.ablation import (
    COSINE,
    EXCESS,
    ISOSCORE,
    OUTPUT,
    Ablation,
    CellRecord,
    EffectLine,
    effects_of,
)
from isoscope.lab.nursery.ingredients import (
    SIZES,
    cells_of,
    label_of,
    read_factors,
    training_of,
)
from isoscope.lab.nursery.spec import TrainSpec
from isoscope.lab.nursery.windows import SPECIAL
from isoscope.lab.nursery.worker import (
    HELD_OUT_TEXT,
    TrainingDivergedError,
    parameter_counts,
)
from isoscope.lab.trajectory.spec import TrajectorySpec
from isoscope.store import new_origin, save
from isoscope.store.run import Run, load
from isoscope.store.schema import MANIFEST
from isoscope.store.state import State
from isoscope.study.run import Finished, Live, Planner, run
from isoscope.study.spec import Execution
from isoscope.types import Reading

APART = 0.02  # by how much the parameters outside of embeddings may differ between cells


class CellFacts(msgspec.Struct, frozen=True):
    """What only a nursery's run says of its training."""

    floor: float
    unigram_entropy: float
    inner_parameters: int


class AblateWorker(Planner[Results[EffectLine]]):
    """The factors of an ablation, checked; every cell opens its own training."""

    def __init__(self, spec: AblateSpec, notify: Notify, _live: Live) -> None:
        self.spec, self.notify = spec, notify
        self.factors = read_factors(spec.factors)
        for cell in cells_of(self.factors):
            self._training(cell, spec.train.seed).check()
        self.middle = f"resid.{max(spec.shape.layers // 2 - 1, 0)}"

    def content(self) -> dict[str, str]:
        """Return nothing: all texts are generated."""
        return {}

    def plan(self) -> AblatePlan:
        """Return every cell, seed by seed: looked at early, it has every cell."""
        spec = self.spec
        self._check_sizes()
        seeds = [spec.train.seed + number for number in range(spec.seeds)]
        train = spec.train
        return AblatePlan(
            stages=(
                tuple(AblationCell(c, seed) for seed in seeds for c in cells_of(self.factors)),
            ),
            threads=train.threads or torch.get_num_threads(),
            tokens=train.steps * train.batch * train.length
            + len(train.saved_steps) * spec.tokens,
        )

    def _training(self, cell: tuple[str, ...], seed: int) -> TrainSpec:
        levels = {f.name: level for f, level in zip(self.factors, cell, strict=True)}
        return training_of(levels, self.spec.shape, self.spec.train, seed)

    def _check_sizes(self) -> None:
        """Refuse cells that differ in more than their ingredient: in how large they are."""
        counts: dict[tuple[str, ...], dict[str, int]] = {}
        for cell in cells_of(self.factors):
            spec = self._training(cell, 0)
            _, inner = parameter_counts(spec, spec.shape.vocabulary + len(SPECIAL))
            sizes = tuple(
                level
                for factor, level in zip(self.factors, cell, strict=True)
                if factor.name in SIZES
            )
            counts.setdefault(sizes, {})[label_of(self.factors, cell)] = inner
        for each in counts.values():
            (small, least), (large, most) = (
                choose(each.items(), key=lambda pair: pair[1]) for choose in (min, max)
            )
            if most > least * (1 + APART):
                raise ConfigError(
                    f"expected cells within {APART:.0%} of each other's parameters outside of "
                    f"embeddings, got {least:,} of {small} and {most:,} of {large}",
                    hint="take a larger --width: what differs then weighs less",
                    slug="nursery-sizes",
                )

    # --- cells ----------------------------------------------------------------------------
    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, AblatePlan)
        self.planned = plan

    def run(self, unit: object, scratch: Scratch, ticks: Ticks, /) -> CellRecord:
        """Train one cell from a seed and measure its trajectory; one that diverges is kept."""
        assert isinstance(unit, AblationCell)
        start = perf_counter()
        spec = self._training(unit.levels, unit.seed)
        spec = msgspec.structs.replace(
            spec, train=msgspec.structs.replace(spec.train, threads=self.planned.threads)
        )
        group = f"{label_of(self.factors, unit.levels)},seed={unit.seed}"
        folder = scratch.path / "train"
        diverged = ""
        if not (folder / MANIFEST).is_file():
            notify = Notify(lambda done, _: ticks.at(done))
            try:
                run(spec, Execution(output=str(folder)), notify=notify)
            except TrainingDivergedError as error:
                diverged = error.problem.removeprefix("training diverged: ")
                ticks.note(f"{group} diverged: {diverged}")
        trained = load(folder)
        diverged = diverged or str(trained.origin.settings.rest.get("diverged") or "")
        readings = list(trained.readings)
        if not diverged:
            readings += self._measure(folder, scratch.path / "trajectory")
        return _record(unit, trained, group, readings, diverged, perf_counter() - start)

    def _measure(self, trained: Path, target: Path) -> list[Reading]:
        """Return cosine and IsoScore of all checkpoints at the output and in the middle."""
        spec = TrajectorySpec.of(
            series=[str(trained)],
            corpus=str(trained / HELD_OUT_TEXT),
            sites=[OUTPUT, self.middle],
            measures=[COSINE, ISOSCORE],
            tokens=self.spec.tokens,
            length=self.spec.train.length,
            no_theories=True,
            threads=self.planned.threads,
        )
        if not (target / MANIFEST).is_file():
            run(spec, Execution(output=str(target)))
        wanted = (COSINE, ISOSCORE)
        return [e for e in load(target).readings if e.measure in wanted and not e.group]

    # --- the end --------------------------------------------------------------------------
    def finish(self, done: Finished) -> Results[EffectLine]:
        """Return the effects, and write the run where there is a target."""
        records = msgspec.convert(done.records, list[CellRecord])
        found = Ablation(
            factors=tuple((each.name, each.levels) for each in self.factors),
            middle=self.middle,
            records=records,
            permutations=self.spec.permutations,
            seed=self.spec.train.seed,
        )
        results = effects_of(found)
        if done.target is not None:
            self._save(done, found, results)
        return results

    def _save(self, done: Finished, found: Ablation, results: Results[EffectLine]) -> None:
        assert done.target is not None
        name = done.target.name
        readings = done.mark(
            replace(e, run=name) for record in found.records for e in record.readings
        )
        bare = [msgspec.structs.replace(each, readings=[]) for each in found.records]
        origin = new_origin(
            sources=[
                {
                    "name": "synthetic language",
                    "fingerprint": done.id,
                    "rows": self.planned_tokens(done),
                    "dtype": "float32",
                    "width": self.spec.shape.width,
                    "warnings": [*results.remarks, *done.notes],
                }
            ],
            settings={
                **self.spec.settings(),
                "measures": [COSINE, ISOSCORE, EXCESS],
                "as_published": False,
                "documents": True,
                "ablation": msgspec.to_builtins(msgspec.structs.replace(found, records=bare)),
            },
            seed=self.spec.train.seed,
            kind=self.spec.command,
        )
        flags = self.spec.to_config(absolute=True) | {"threads": done.plan.threads}
        save(
            done.target,
            State(Survey()),
            Results(readings, READINGS),
            origin,
            {self.spec.command: flags},
            done.overwrite,
            resume=True,
        )

    def planned_tokens(self, done: Finished) -> int:
        """Return the tokens of all cells together."""
        return done.plan_as(AblatePlan).total() or 0


def _record(
    unit: AblationCell,
    trained: Run,
    group: str,
    readings: list[Reading],
    diverged: str,
    seconds: float,
) -> CellRecord:
    facts = msgspec.convert(trained.origin.settings.rest, CellFacts)
    model = trained.origin.model
    return CellRecord(
        levels=unit.levels,
        seed=unit.seed,
        readings=[replace(each, run="", group=group) for each in readings],
        parameters=(model.parameters if model is not None else 0) or 0,
        inner_parameters=facts.inner_parameters,
        unigram_entropy=facts.unigram_entropy,
        floor=facts.floor,
        diverged=diverged,
        seconds=seconds,
    )
