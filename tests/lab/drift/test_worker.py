"""The worker of drift: units, engines, resuming, places, stacks, and bad input."""

import pytest

import isoscope as iso
from isoscope.engine import Notify
from isoscope.errors import ConfigError, IsoscopeError
from isoscope.lab.drift.results import DriftFixedPoint, DriftPoint
from isoscope.lab.drift.spec import DriftSpec
from isoscope.lab.drift.worker import DriftWorker, check_norms

TINY = {"width": 16, "heads": 2, "tokens": 8, "initialisations": 2}


def points(found, arch, measure, at):
    keys = (arch, at, measure)
    return [e for e in found if isinstance(e, DriftPoint) and (e.arch, e.at, e.measure) == keys]


def test_norms_are_in_order_and_each_once():
    assert check_norms(DriftSpec.of(norms=[10.0, 0.0, 10.0, 3.0])) == [0.0, 3.0, 10.0]
    with pytest.raises(ConfigError, match="expected finite numbers as norms"):
        check_norms(DriftSpec.of(norms=[1.0, float("inf")]))


def test_every_initialisation_is_a_unit():
    spec = DriftSpec.of(arch=["bert", "gpt2"], width=24, heads=2, initialisations=3, seed=5)
    (units,) = DriftWorker(spec, Notify(), {}).plan().stages
    assert len(units) == 6
    assert {(unit.arch, unit.seed) for unit in units} == {
        (arch, seed) for arch in ("bert", "gpt2") for seed in (5, 6, 7)
    }


def test_both_engines_and_a_run_that_is_resumed_give_the_same(tmp_path, forked_pool):
    options = {**TINY, "arch": "bert,llama", "norms": [0, 8]}
    here = iso.drift(**options)
    pool = iso.drift(**options, engine="pool", workers=2)
    assert pool.to_dict() == here.to_dict()

    class Stop(Exception):
        pass

    def stop(done, _of):
        if done == 2:
            raise Stop

    with pytest.raises(Stop):
        iso.drift(**options, output=tmp_path / "run", progress=stop)
    done = []
    again = iso.drift(
        **options, output=tmp_path / "run", progress=lambda n, _of: done.append(n)
    )
    assert again.to_dict() == here.to_dict()


def test_drift_after_the_norm_and_a_stack():
    found = iso.drift(
        arch="gpt2", at="norm-bias,key-bias", norms=[0, 32], blocks=2, std=0.1, **TINY
    )
    rows = [e for e in found if isinstance(e, DriftPoint)]
    assert {(each.at, each.block) for each in rows} == {
        (at, block) for at in ("norm-bias", "key-bias") for block in (0, 1)
    }
    assert not any(isinstance(each, DriftFixedPoint) for each in found)
    before, _, after, _ = (e.mean for e in points(found, "gpt2", "score-spread", "norm-bias"))
    assert after > 2 * before
    before, _, after, _ = (e.mean for e in points(found, "gpt2", "score-spread", "key-bias"))
    assert after == pytest.approx(before, rel=1e-4)


def test_one_initialisation_has_no_intervals():
    found = iso.drift(arch="vit", norms=[1], **{**TINY, "initialisations": 1})
    assert all(e.sd is None and e.low is None and e.next_low is None for e in found[:8])
    assert "NaN" not in found.to_json()


@pytest.mark.parametrize(
    ("options", "problem", "slug"),
    [
        ({"arch": "bart"}, "no arch is called 'bart'", "unknown-arch"),
        ({"at": "inputs"}, "no place of drift is called 'inputs'", "unknown-place-of-drift"),
        ({"heads": 5}, "a width that 5 heads divide", "drift-width"),
        ({"initialisations": 0}, "at least 1 as initialisations, got 0", "number-too-small"),
        ({"tokens": 1}, "at least 2 as tokens, got 1", "number-too-small"),
        ({"norms": [-1.0]}, "at least 0 as norms, got -1.0", "number-range"),
        ({"norms": [float("nan")]}, "at least 0 as norms, got nan", "number-range"),
        ({"norms": [float("inf")]}, "expected finite numbers as norms", "drift-norms"),
        ({"norms": []}, "expected finite numbers as norms", "drift-norms"),
        ({"std": float("nan")}, "as std, got nan", "number-range"),
        ({"arch": "bert", "at": "norm-bias"}, "no norm in front", "drift-place"),
    ],
)
def test_bad_input_is_one_clear_error(tmp_path, options, problem, slug):
    with pytest.raises(IsoscopeError, match=problem) as caught:
        iso.drift(**{**TINY, **options}, output=tmp_path / "run")
    assert caught.value.slug == slug
    assert not (tmp_path / "run").exists()


def test_the_default_norms_and_sizes_are_those_of_the_published_experiment():
    spec = DriftSpec()
    assert (spec.shape.width, spec.shape.heads, spec.shape.inner) == (768, 12, 3072)
    assert (spec.tokens, spec.std, spec.initialisations) == (512, 0.02, 20)


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"tokens": 10**8}, "drift-memory"),
        ({"blocks": 10**7}, "drift-memory"),
        ({"arch": ()}, "option-missing"),
        ({"at": ()}, "option-missing"),
    ],
)
def test_what_cannot_be_run_is_refused_before_it_begins(options, slug):
    with pytest.raises(ConfigError) as caught:
        iso.drift(**options)
    assert caught.value.slug == slug
