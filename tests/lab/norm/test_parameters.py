"""The reference of the final norm against simulation and real models."""

import numpy as np
import pytest

from isoscope.errors import UndefinedError
from isoscope.lab.norm.parameters import Affine, final_affines, final_norms, reference_cosine
from isoscope.lab.norm.worker import cosine_gained, mean_cosine
from isoscope.study.model import subject_of


def normalised(n, d, seed):
    """Return what a LayerNorm makes of Gaussian rows before gain and bias: mean zero."""
    rows = np.random.default_rng(seed).normal(size=(n, d))
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / rows.std(axis=1, keepdims=True)


@pytest.mark.parametrize("ratio", [0.05, 0.2, 0.5, 1.0, 2.0, 10.0])
def test_the_reference_is_the_cosine_of_rows_with_mean_zero(ratio):
    rng = np.random.default_rng(7)
    d = 512
    gain = np.exp(rng.normal(0, 0.4, d))
    bias = rng.normal(size=d)
    bias *= ratio * np.linalg.norm(gain) / np.linalg.norm(bias)
    out = gain * normalised(4000, d, 1) + bias
    # The spread of norms is of order 1 / sqrt(d); the mean of 4,000 rows is 1 / 4,000 long.
    assert mean_cosine(out) == pytest.approx(reference_cosine(ratio), abs=3e-3)


@pytest.mark.parametrize(
    ("ratio", "value"), [(0.2, 0.03846), (0.5, 0.2), (1.0, 0.5), (2.0, 0.8), (0.4034, 0.14)]
)
def test_the_reference_is_what_the_paper_is_quoted_with(ratio, value):
    assert reference_cosine(ratio) == pytest.approx(value, abs=1e-4)


def test_the_reference_survives_a_ratio_without_measure():
    assert reference_cosine(1e200) == 1.0
    assert reference_cosine(0.0) == 0.0


def test_it_is_no_bound_because_the_mean_may_cancel_the_bias():
    shift = np.repeat([0.5, -0.5], 256)
    rows = normalised(2000, 512, 2) * np.sqrt(1 - 0.25) + shift
    gain = np.ones(512)
    against, along = (
        cosine_gained(rows, Affine(gain, sign * shift, True)).gain_and_bias for sign in (-1, 1)
    )
    assert against < 0.01
    assert reference_cosine(0.5) == pytest.approx(0.2)
    assert along > 0.4


def test_a_layer_norm_is_described_by_its_parameters(tiny):
    subject = subject_of(tiny)
    (norm,) = final_norms(subject)
    module = subject.loaded.body.encoder.layer[-1].output.LayerNorm
    assert norm.site == "norm"
    assert norm.module == "encoder.layer.2.output.LayerNorm"
    assert norm.kind == "LayerNorm"
    assert norm.centred
    assert norm.gain_norm == pytest.approx(float(module.weight.norm()))
    assert norm.bias_norm == pytest.approx(float(module.bias.norm()))
    r = norm.bias_norm / norm.gain_norm
    assert norm.reference == pytest.approx(r**2 / (1 + r**2))
    assert "not a bound" in norm.remark
    assert norm.to_dict()["what"] == "final-norm"


def test_parameters_that_stand_out_are_named(tiny):
    subject = subject_of(tiny)
    module = subject.loaded.body.encoder.layer[-1].output.LayerNorm
    for sigmas in (2.0, 3.0):
        (norm,) = final_norms(subject, sigmas=sigmas)
        for values, found in (
            (module.weight, norm.gain_outliers),
            (module.bias, norm.bias_outliers),
        ):
            numbers = values.detach().double().numpy()
            far = np.abs(numbers - numbers.mean()) / numbers.std() > sigmas
            assert found == np.flatnonzero(far).tolist()


def test_an_rms_norm_has_no_reference_and_says_why(gemma):
    (norm,) = final_norms(subject_of(gemma))
    assert (norm.bias_norm, norm.ratio, norm.reference) == (None, None, None)
    assert "has no bias" in norm.remark
    assert not norm.centred
    subject = subject_of(gemma)
    weight = subject.loaded.body.norm.weight
    assert norm.gain_norm == pytest.approx(float((1 + weight).norm()))


def test_a_model_without_a_final_norm_says_so(normless):
    with pytest.raises(UndefinedError, match="expected a norm after the last block") as raised:
        final_norms(subject_of(normless))
    assert raised.value.slug == "no-final-norm"
    assert raised.value.hint


@pytest.mark.real
def test_minilm_has_the_norm_it_was_shipped_with(minilm):
    (norm,) = final_norms(subject_of(minilm))
    assert (norm.kind, norm.width) == ("LayerNorm", 384)
    assert norm.ratio == pytest.approx(0.048164, abs=1e-6)
    assert norm.reference == pytest.approx(0.0023144, abs=1e-7)


@pytest.mark.real
@pytest.mark.parametrize(
    ("folder", "ratios"),
    [
        ("rxnfp_bert_pretrained_fp16", [0.067354]),
        ("rxnfp_bert_ft_fp16", [0.084848]),
        ("whisper_tiny_en_fp16", [0.493912, 0.084325]),
    ],
)
def test_other_real_models_have_theirs(shared_models, folder, ratios):
    norms = final_norms(subject_of(shared_models / folder))
    assert [norm.ratio for norm in norms] == pytest.approx(ratios, abs=1e-6)


@pytest.mark.real
@pytest.mark.parametrize(
    "model", ["minilm", "rxnfp_bert_pretrained_fp16", "whisper_tiny_en_fp16"]
)
def test_the_reference_holds_for_the_gain_and_bias_of_real_models(request, model):
    """With their own gain and bias, on rows of mean zero, real norms give the reference."""
    if model == "minilm":
        folder = request.getfixturevalue("minilm")
    else:
        folder = request.getfixturevalue("shared_models") / model
    for _, affine in final_affines(subject_of(folder)).values():
        rows = normalised(3000, len(affine.gain), 5)
        found = cosine_gained(rows, affine)
        # One dimension of MiniLM's or Whisper's gain may be far above all others, so that
        # norms have more spread than those of equal dimensions.
        assert found.gain_and_bias == pytest.approx(affine.reference, abs=4e-3)
        assert found.zero_mean == pytest.approx(affine.reference, rel=0.02)
