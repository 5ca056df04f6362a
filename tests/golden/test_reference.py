"""What other people's code reads on the same clouds; reference.json names the sources."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from isoscope.api import measure
from isoscope.measures.rankme import of_squares

GOLDEN = json.loads(Path(__file__).with_name("reference.json").read_text())
VALUES = GOLDEN["values"]
ZETAS = (0.1, 0.5, 0.9)
every_cloud = pytest.mark.parametrize("name", VALUES)


def normal(seed, n, d):
    return np.random.default_rng(seed).standard_normal((n, d))


@cache
def cloud(name):
    """Return the rows that a value was computed on, from the recipe they were made by."""
    if name == "A_decay_n200_d16":
        return normal(1, 200, 16) * GOLDEN["scales"][name]
    if name == "B_nltd_n48_d96":
        return normal(2, 48, 96)
    if name == "C_shift_n300_d24":
        return normal(3, 300, 24) * GOLDEN["scales"][name] + 5.0
    if name == "D_iso_n1000_d32":
        return normal(4, 1000, 32)
    if name == "E_outlier_n500_d64":
        return normal(5, 500, 64) * np.where(np.arange(64) == 7, 30.0, 1.0)
    assert name == "F_manifold_n1500_d20"
    rng = np.random.default_rng(6)
    return np.tanh(rng.uniform(-1, 1, (1500, 3)) @ rng.standard_normal((3, 20)))


@cache
def found(name, *measures, **options):
    readings = measure(cloud(name), measures=measures or None, **options)
    return {each.measure: each.value for each in readings}


def expected(name, key, *, rel=None, absolute=None):
    return pytest.approx(VALUES[name][key], rel=rel, abs=absolute)


@every_cloud
def test_the_rows_are_those_of_the_reference(name):
    rows = cloud(name)
    sums = GOLDEN["sums"][name]
    assert [rows.sum(), (rows**2).sum()] == pytest.approx(sums, rel=1e-12)


def test_every_value_has_a_source():
    for key in set().union(*VALUES.values()):
        assert any(key.startswith(source) for source in GOLDEN["sources"]), key


@pytest.mark.parametrize("name", [n for n in VALUES if "IsoScore_repo1edad0b" in VALUES[n]])
def test_isoscore_is_that_of_its_authors(name):
    # their repository, in float64
    assert found(name)["isoscore"] == expected(name, "IsoScore_repo1edad0b", rel=1e-9)


@every_cloud
@pytest.mark.parametrize("key", ["IsoScore_pypi2.0.1", "IsoScore_cov_pypi"])
def test_isoscore_is_that_of_the_package(name, key):
    # IsoScore 2.0.1: constants through a float32 square root, 3.5e-8 off
    assert found(name)["isoscore"] == expected(name, key, rel=0, absolute=5e-8)


@every_cloud
@pytest.mark.parametrize("zeta", ZETAS)
@pytest.mark.parametrize("source", ["repo", "pypi"])
def test_isoscore_star_as_published_is_that_of_its_authors(name, zeta, source):
    # I-STAR/regularizers.py and IsoScore 2.0.1, C0 = identity, the same float32 square root
    ours = found(name, "isoscore-star", zeta=zeta, as_published=True)["isoscore-star"]
    key = f"IsoScoreStar_{source}_C0eye_zeta{zeta}"
    assert ours == expected(name, key, rel=0, absolute=5e-8)


@every_cloud
def test_mean_cosine_is_that_of_all_pairs(name):
    # scikit-learn 1.9.1, the whole matrix less its diagonal
    ours = found(name)["mean-cosine"]
    assert ours == expected(name, "mean_offdiag_cosine_sklearn", rel=1e-9)


@every_cloud
def test_mean_cosine_is_what_cosreg_penalises(name):
    # I-STAR/regularizers.py divides by N^2, not by N (N - 1)
    n = len(cloud(name))
    assert found(name)["mean-cosine"] * (n - 1) / n == expected(name, "CosReg_repo", rel=1e-9)


@every_cloud
@pytest.mark.parametrize(
    ("ours", "key"),
    [
        ("uniformity", "uniformity_align_uniform_t2_unitnorm"),  # its authors' align_uniform
        ("top-share", "anisotropy_llm_microscope"),  # llm-microscope 0.0.7
        ("participation", "effdim_participation_ratio"),  # effdim 0.1.1
        ("participation", "effdim_renyi_eff_dimensionality_alpha_2"),
        ("effective-rank", "effdim_shannon_entropy"),
    ],
)
def test_peers_that_compute_the_same_agree(name, ours, key):
    assert found(name)[ours] == expected(name, key, rel=1e-9)


@every_cloud
@pytest.mark.parametrize(
    ("ours", "key"),
    [
        ("twonn", "twonn_skdim"),  # scikit-dimension 0.5.0
        ("twonn", "2nn_dadapy_base"),  # dadapy 0.3.4
        ("mle-dimension", "mle_skdim_k20"),
    ],
)
def test_intrinsic_dimensions_agree(name, ours, key):
    assert found(name)[ours] == expected(name, key, rel=1e-6)


@every_cloud
def test_the_formula_of_rankme_agrees_on_other_values(name):
    # reptrix 0.1.0 applies it, with its 1e-7, to eigenvalues of the covariance
    rows = cloud(name)
    values = np.linalg.eigvalsh(np.cov(rows.T))[::-1][: min(rows.shape)]
    ours = of_squares(np.maximum(values, 0) ** 2)
    assert ours == expected(name, "rankme_reptrix_eigenvalue_variant", rel=1e-9)


@every_cloud
@pytest.mark.parametrize("as_published", [False, True])
def test_the_partition_score_known_to_be_wrong_is_not_reproduced(name, as_published):
    # existing_scores.partition_score multiplies elementwise and takes rows of eigenvectors
    wrong = VALUES[name]["partition_score_official_AS_CODED_known_wrong"]
    ours = found(name, "partition", as_published=as_published)["partition"]
    assert ours != pytest.approx(wrong, rel=0.1)
