"""The worker of `isoscope drift`: initialisations of untrained blocks, or layers of surveys."""

from dataclasses import asdict
from math import isfinite, sqrt

import msgspec
import numpy as np

from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import ConfigError
from isoscope.lab.drift.architecture import ARCHITECTURES, check_heads, check_place
from isoscope.lab.drift.correlation import correlate
from isoscope.lab.drift.results import (
    DRIFT,
    FIXED,
    DriftCorrelation,
    DriftFixedPoint,
    DriftRecord,
    DriftValue,
    drift_results,
    reading_of,
)
from isoscope.lab.drift.spec import DriftPlan, DriftSpec, Initialisation, SurveyedLayers
from isoscope.memory import as_bytes, free_memory
from isoscope.store import load
from isoscope.store.state import State
from isoscope.study.run import Finished, Live, Planner, need_torch

NO_FIXED_POINT = (
    "no fixed point of {names}: a pre-norm block adds to its input, so that on average the "
    "mean grows; where some initialisations have one, what they add happens to point against it"
)


class DriftWorker(Planner[Results[DriftRecord]]):
    """A spec that has been checked; every unit builds its own blocks."""

    def __init__(self, spec: DriftSpec, _notify: Notify, _live: Live) -> None:
        self.spec = spec
        self.surveys = [load(run) for run in spec.survey or ()]
        if self.surveys:
            return
        for option, chosen in (("arch", spec.arch), ("at", spec.at)):
            if not chosen:
                raise ConfigError(
                    f"drift needs at least 1 as {option}, got 0",
                    hint=f"leave --{option} out for its default",
                    slug="option-missing",
                )
        self.norms = check_norms(spec)
        check_heads(spec.arch, spec.width, spec.heads)
        for name in spec.arch:
            for place in spec.at:
                check_place(ARCHITECTURES[name], place)
        check_memory(spec)
        need_torch("drift")

    def content(self) -> dict[str, str]:
        """Refuse a run folder for surveys: there is nothing to write that they do not hold."""
        if self.surveys:
            raise ConfigError(
                "cannot save a correlation over layers as a run",
                hint="drop -o; --json prints it in full",
                slug="drift-survey-output",
            )
        return {}

    def plan(self) -> DriftPlan:
        """Return one unit per survey; or initialisations, each of all blocks in turn."""
        spec = self.spec
        if self.surveys:
            return DriftPlan(stages=(tuple(SurveyedLayers(run) for run in spec.survey or ()),))
        units = [
            Initialisation(arch, place, spec.seed + number)
            for number in range(spec.initialisations)
            for arch in dict.fromkeys(spec.arch)
            for place in dict.fromkeys(spec.at)
        ]
        return DriftPlan(stages=(tuple(units),), threads=spec.threads)

    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, DriftPlan)

    def run(self, unit: object, _scratch: Scratch, _ticks: Ticks, /) -> object:
        """Return the values of one initialisation, or the correlation of one survey."""
        if isinstance(unit, SurveyedLayers):
            names = list(self.spec.survey or ())
            return asdict(correlate(self.surveys[names.index(unit.run)], self.spec.seed))
        assert isinstance(unit, Initialisation)
        return [msgspec.to_builtins(each) for each in self._initialise(unit)]

    def finish(self, done: Finished) -> Results[DriftRecord]:
        """Return all records, and write the run where there is a target."""
        if self.surveys:
            return Results(msgspec.convert(done.records, list[DriftCorrelation]), DRIFT)
        shape = self.spec.shape
        records = msgspec.convert(done.records, list[list[DriftValue]])
        values = [value for record in records for value in record]
        found = drift_results(values, shape)
        without = [
            each.arch
            for each in found
            if isinstance(each, DriftFixedPoint) and each.closed is None
        ]
        if without:
            found.remarks = (NO_FIXED_POINT.format(names=", ".join(without)),)
        if done.target is not None:
            readings = done.mark(reading_of(e, done.target.name, shape) for e in values)
            source = {
                "name": "z + b",
                "rows": shape.tokens * len(records) * len(self.norms),
                "dtype": "float32",
                "width": shape.width,
            }
            done.save_values(readings, {"shape": asdict(shape)}, source, self.spec.seed)
        return found

    def _initialise(self, unit: Initialisation) -> list[DriftValue]:
        """Draw weights, inputs and directions; feed every norm, then look for a fixed point."""
        import torch

        from isoscope.capture.runner import threads
        from isoscope.lab.drift.block import build, drifting, find_fixed_point

        shape = self.spec.shape
        inputs, weights = (
            int(np.random.SeedSequence([unit.seed, part]).generate_state(1, np.uint64)[0] >> 1)
            for part in range(2)
        )
        draw = torch.Generator().manual_seed(inputs)
        rows = torch.randn(shape.tokens, shape.width, generator=draw)
        first, second = (
            each / each.norm() for each in torch.randn(2, shape.width, generator=draw)
        )
        found: list[DriftValue] = []
        with threads(self.spec.threads):
            blocks = build(unit.arch, shape, weights, biases="bias" in unit.place)
            outs: dict[float, float] = {}

            def excess(norm: float) -> float:
                if norm not in outs:
                    outs[norm] = blocks.run(rows + norm * first)[-1]["mean-norm-out"]
                entered = (rows.double().mean(0) + norm * first.double()).norm()
                return outs[norm] - float(entered)

            for norm in self.norms:
                with drifting(blocks, unit.place, (norm * first, norm * second)):
                    drifted = rows + norm * first if unit.place == "input" else rows
                    measured = blocks.run(drifted)
                outs[norm] = measured[-1]["mean-norm-out"]
                found += [
                    DriftValue(unit.arch, unit.place, unit.seed, block, norm, name, value)
                    for block, values in enumerate(measured)
                    for name, value in values.items()
                ]
            fixed = find_fixed_point(excess, self.norms) if unit.place == "input" else None
        if fixed is not None:
            last = shape.blocks - 1
            where = (unit.arch, unit.place, unit.seed, last)
            found.append(DriftValue(*where, None, FIXED, fixed))
        return found


def check_norms(spec: DriftSpec) -> list[float]:
    """Return the norms in order, each once; refuse infinity, and an empty list."""
    norms = sorted(set(spec.norms))
    if not norms or not all(map(isfinite, norms)):
        given = ",".join(f"{norm:g}" for norm in spec.norms)
        raise ConfigError(
            f"expected finite numbers as norms, got {given!r}",
            hint=f"--norms 0,10,{sqrt(spec.width):.3g},100",
            slug="drift-norms",
        )
    return norms


def check_memory(spec: DriftSpec) -> None:
    """Refuse sequences and blocks that do not fit into memory: scores, states and weights."""
    shape, free = spec.shape, free_memory()
    inner = shape.inner
    scores = 2 * shape.heads * shape.tokens**2
    states = shape.tokens * (4 * shape.width + inner)
    weights = shape.blocks * shape.width * (4 * shape.width + 2 * inner)
    needed = 4 * (scores + states + weights)
    if needed > free:
        raise ConfigError(
            f"drift of {shape.tokens} tokens, {shape.blocks} blocks and width {shape.width} "
            f"needs about {as_bytes(needed)} of memory, got {as_bytes(free)} free",
            hint="take fewer --tokens or --blocks, or a smaller --width",
            slug="drift-memory",
        )
