"""The worker of curvature: units, engines, resuming, tables and bad input."""

import json

import pytest

import isoscope as iso
from isoscope.engine import Notify
from isoscope.errors import IsoscopeError
from isoscope.lab.curvature.results import (
    CurvatureExponent,
    CurvaturePoint,
    results_of_run,
)
from isoscope.lab.curvature.spec import CurvatureSpec
from isoscope.lab.curvature.worker import CurvatureWorker
from isoscope.store import load

TINY = {"draws": 2, "samples": 100, "types": 20}


def test_every_draw_of_a_manifold_is_a_unit():
    spec = CurvatureSpec.of(manifolds="sphere,parabola", draws=3, seed=5)
    (units,) = CurvatureWorker(spec, Notify(), {}).plan().stages
    assert {(unit.manifold, unit.seed) for unit in units} == {
        (name, seed) for name in ("sphere", "parabola") for seed in (5, 6, 7)
    }


def test_means_hold_the_closed_forms_and_exponents_are_two_four_and_one(curvature_run):
    _, found = curvature_run
    points = [each for each in found if isinstance(each, CurvaturePoint)]
    assert len(points) == 3 * (6 * 6 + 2 * 4)
    # 132 intervals of 95 %; those of one draw of points go together over radii
    held = [each.low <= each.closed <= each.high for each in points if each.sd]
    assert sum(held) > 0.85 * len(held)
    assert all(abs(each.deviation) < 0.15 for each in points)
    exponents = [each for each in found if isinstance(each, CurvatureExponent)]
    assert len(exponents) == 9
    for each in exponents:
        assert each.mean == pytest.approx(each.predicted, abs=0.02)


def test_a_run_is_read_back_and_printed(curvature_run):
    folder, found = curvature_run
    again = results_of_run(load(folder))
    assert again.to_dict() == found.to_dict()
    shown = str(found)
    assert "sphere of dimension 2: means over 12 draws" in shown
    assert "exponents of the radius" in shown and "not bounded by O(t)" in shown
    lines = [json.loads(line) for line in found.to_json().splitlines()]
    assert {line["what"] for line in lines} == {"point", "exponent"}
    assert lines[0]["manifold"] == "parabola" and lines[0]["dimension"] == 1


def test_both_engines_and_a_run_that_is_resumed_give_the_same(tmp_path, forked_pool):
    here = iso.curvature(**TINY)
    pool = iso.curvature(**TINY, engine="pool", workers=2)
    assert pool.to_dict() == here.to_dict()

    class Stop(Exception):
        pass

    def stop(done, _of):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        iso.curvature(**TINY, output=tmp_path / "run", progress=stop)
    assert iso.curvature(**TINY, output=tmp_path / "run").to_dict() == here.to_dict()


def test_one_draw_at_one_radius_has_neither_intervals_nor_exponents():
    found = iso.curvature(manifolds="sphere", radii=0.5, bias=0, draws=1, samples=50)
    assert len(found) == 8
    assert all(each.sd is None and each.low is None for each in found)
    assert "NaN" not in found.to_json() and "sphere" in str(found)


@pytest.mark.parametrize(
    ("options", "problem", "slug"),
    [
        ({"manifolds": "torus"}, "no manifold is called 'torus'", "unknown-manifold"),
        ({"manifolds": ()}, "at least 1 as manifolds, got 0", "option-missing"),
        ({"radii": [1.5]}, "radii of at most 1 on a sphere, got '1.5'", "curvature-radii"),
        ({"radii": [0.0]}, "numbers from 1e-06 to 1e.06 as radii", "curvature-radii"),
        ({"radii": [float("nan")]}, "as radii, got 'nan'", "curvature-radii"),
        ({"radii": []}, "as radii, got ''", "curvature-radii"),
        ({"bias": [-1]}, "at least 0 and at most 4 as bias", "number-range"),
        ({"dimension": 0}, "at least 1 and at most 1024 as dimension", "number-range"),
        ({"samples": 10**13}, "of memory, got", "curvature-memory"),
    ],
)
def test_bad_input_is_one_clear_error(tmp_path, options, problem, slug):
    with pytest.raises(IsoscopeError, match=problem) as caught:
        iso.curvature(**{**TINY, **options}, output=tmp_path / "run")
    assert caught.value.slug == slug
    assert not (tmp_path / "run").exists()


def test_a_parabola_has_no_largest_radius():
    found = iso.curvature(manifolds="parabola", radii=[3, 1], **TINY)
    assert {each.radius for each in found if isinstance(each, CurvaturePoint)} == {3.0, 1.0}
