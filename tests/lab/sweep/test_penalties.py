"""Penalties by name, and weights as they are typed."""

import pytest

from isoscope.control import CosReg, DebiasedIsotropy, IStar, MeanCosine, penalised
from isoscope.errors import ConfigError, PenaltyError, UnknownNameError
from isoscope.lab.sweep.penalties import (
    PENALTIES,
    Choice,
    checked_weights,
)
from isoscope.study.model import subject_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("istar", IStar),
        ("debiased", DebiasedIsotropy),
        ("cosreg", CosReg),
        ("mean-cosine", MeanCosine),
    ],
)
def test_each_name_is_a_penalty_with_its_weight_and_seed(name, kind):
    penalty = Choice(name, rows=64, layers=(0, 1)).at(-2.0, 7)
    assert type(penalty) is kind
    assert (penalty.weight, penalty.seed, penalty.rows) == (-2.0, 7, 64)
    assert penalty.layers == (0, 1)
    assert set(PENALTIES) == {"istar", "debiased", "cosreg", "mean-cosine"}


def test_defaults_are_those_of_the_penalty():
    assert Choice("cosreg").at(1.0, 0).layers == "last"
    assert Choice("istar").at(1.0, 0).layers == "all"
    assert Choice("mean-cosine").at(1.0, 0).per_layer
    assert Choice("istar", per_layer=True).at(1.0, 0).per_layer


def test_shrinkage_and_published_forms_reach_their_penalties():
    star = Choice("istar", zeta=0.5, towards="running").at(1.0, 0)
    assert (star.zeta, star.towards) == (0.5, "running")
    assert Choice("istar", towards="streamed").at(1.0, 0).towards == "scaled"
    assert Choice("cosreg", as_published=True).at(1.0, 0).as_published


@pytest.mark.parametrize(
    ("name", "given", "error", "slug"),
    [
        ("istarr", {}, UnknownNameError, "unknown-penalty"),
        ("istar", {"towards": "running2"}, UnknownNameError, "unknown-shrinkage"),
        ("cosreg", {"towards": "running"}, ConfigError, "shrinkage-matrix"),
        ("istar", {"as_published": True}, ConfigError, "penalty-published"),
        ("istar", {"layers": []}, ConfigError, "penalty-layers"),
    ],
)
def test_what_does_not_fit_is_reported(name, given, error, slug):
    with pytest.raises(error) as caught:
        Choice(name, **given)
    assert caught.value.slug == slug


@pytest.mark.parametrize("layers", [None, "all", "last", 1, [0, 1], [-2]])
def test_layers_of_a_model_are_taken(tiny, layers):
    penalised(subject_of(tiny).loaded.body, Choice("istar", layers=layers).at(1.0, 0))


@pytest.mark.parametrize("layers", [3, [0, 7], [-4], "first"])
def test_layers_that_a_model_has_not_are_refused(tiny, layers):
    with pytest.raises(PenaltyError) as caught:
        penalised(subject_of(tiny).loaded.body, Choice("istar", layers=layers).at(1.0, 0))
    assert caught.value.slug == "penalty-layers"


def test_weights_are_sorted_once_each_with_zero_among_them():
    assert checked_weights(["3", "-3", 3.0, "-0"]) == (-3.0, 0.0, 3.0)
    assert checked_weights([1]) == (0.0, 1.0)


@pytest.mark.parametrize("weights", [["nan"], ["inf"], ["a"], [], ["0"], [None]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ConfigError) as caught:
        checked_weights(weights)
    assert caught.value.slug == "penalty-weight"
