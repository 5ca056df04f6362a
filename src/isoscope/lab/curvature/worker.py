"""The worker of `isoscope curvature` without a model: draws on manifolds."""

from math import isfinite

import msgspec
import numpy as np

from isoscope.display import Results
from isoscope.engine import Notify, Scratch, Ticks
from isoscope.errors import ConfigError
from isoscope.lab.curvature.manifolds import MANIFOLDS, Surface
from isoscope.lab.curvature.results import (
    CurvatureRecord,
    CurvatureValue,
    Sizes,
    curvature_results,
    reading_of,
)
from isoscope.lab.curvature.simulation import measure_bias, measure_radius
from isoscope.lab.curvature.spec import CurvaturePlan, CurvatureSpec, Draw
from isoscope.memory import as_bytes, free_memory
from isoscope.store.state import State
from isoscope.study.run import Finished, Live, Planner


class CurvatureWorker(Planner[Results[CurvatureRecord]]):
    """A spec that has been checked."""

    def __init__(self, spec: CurvatureSpec, _notify: Notify, _live: Live) -> None:
        self.spec = spec
        self.names = tuple(dict.fromkeys(spec.manifolds))
        if not self.names:
            raise ConfigError(
                "curvature needs at least 1 as manifolds, got 0",
                hint="leave --manifolds out for all of them",
                slug="option-missing",
            )
        self.radii = check_radii(spec)
        check_memory(spec)

    def plan(self) -> CurvaturePlan:
        """Return one unit per draw and manifold."""
        seeds = range(self.spec.draw.seed, self.spec.draw.seed + self.spec.draws)
        units = tuple(Draw(name, seed) for seed in seeds for name in self.names)
        return CurvaturePlan(stages=(units,))

    def enter(self, plan: object, _stage: int, _before: State | None, /) -> None:
        """Take the plan."""
        assert isinstance(plan, CurvaturePlan)

    def run(self, unit: object, _scratch: Scratch, _ticks: Ticks, /) -> object:
        """Return the values of one draw."""
        assert isinstance(unit, Draw)
        spec, surface = self.spec, Surface.of(unit.manifold, self.spec.dimension)
        entropy = [unit.seed, list(MANIFOLDS).index(unit.manifold)]
        rng = np.random.Generator(np.random.PCG64(entropy))
        where = (unit.manifold, surface.dimension, unit.seed)
        found = [
            CurvatureValue(*where, radius, None, name, value)
            for radius in self.radii
            for name, value in measure_radius(surface, radius, spec.samples, rng).items()
        ]
        most, sizes = self.radii[0], (spec.types, spec.samples)
        found += [
            CurvatureValue(*where, most, bias, name, value)
            for bias in sorted(set(spec.bias))
            for name, value in measure_bias(surface, most, bias, sizes, rng).items()
        ]
        return [msgspec.to_builtins(each) for each in found]

    def finish(self, done: Finished) -> Results[CurvatureRecord]:
        """Return all records, and write the run where there is a target."""
        spec = self.spec
        sizes = Sizes(spec.types, spec.samples)
        records = msgspec.convert(done.records, list[list[CurvatureValue]])
        values = [value for record in records for value in record]
        if done.target is not None:
            readings = done.mark(reading_of(e, done.target.name, sizes) for e in values)
            source = {
                "name": ", ".join(self.names),
                "rows": spec.samples * len(records) * len(self.radii),
                "dtype": "float64",
                "width": spec.dimension + 1,
            }
            kept = {"sizes": msgspec.to_builtins(sizes)}
            done.save_values(readings, kept, source, spec.draw.seed)
        return curvature_results(values, sizes)


def check_radii(spec: CurvatureSpec) -> list[float]:
    """Return the radii, the largest first; refuse what lies outside of a manifold."""
    radii = sorted(set(spec.radii), reverse=True)
    given = ",".join(f"{radius:g}" for radius in spec.radii)
    if not radii or not all(isfinite(radius) and 1e-6 <= radius <= 1e6 for radius in radii):
        raise ConfigError(
            f"expected numbers from 1e-06 to 1e+06 as radii, got {given!r}",
            hint="--radii 0.8,0.4,0.2,0.1",
            slug="curvature-radii",
        )
    for name in spec.manifolds:
        reach = MANIFOLDS[name].reach
        if reach is not None and radii[0] > reach:
            raise ConfigError(
                f"expected radii of at most {reach:g} on a {name}, got {given!r}",
                hint=f"a {name} has radius 1: take smaller --radii, or other --manifolds",
                slug="curvature-radii",
            )
    return radii


def check_memory(spec: CurvatureSpec) -> None:
    """Refuse points and types that do not fit into memory."""
    needed = 8 * (spec.samples * (4 * spec.dimension + 8) + 4 * spec.types)
    free = free_memory()
    if needed > free:
        raise ConfigError(
            f"{spec.samples} points of dimension {spec.dimension} and {spec.types} types need "
            f"about {as_bytes(needed)} of memory, got {as_bytes(free)} free",
            hint="take fewer --samples or --types, or a smaller --dimension",
            slug="curvature-memory",
        )
