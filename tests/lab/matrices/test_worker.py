"""I(W) of a model's matrices, against its definition and the anchor of the paper."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import UndefinedError
from isoscope.lab.matrices.worker import partition_of
from isoscope.study.model import subject_of


def of(found, site, *, centred=False):
    return next(e for e in found if (e.site, e.centred) == (site, centred))


def slow(matrix):
    """Return I(W) over both signs, and over one: sums of exp along eigenvectors of W'W."""
    matrix = matrix.astype(np.float64)
    axes = np.linalg.eigh(matrix.T @ matrix)[1]
    plus = [np.exp(matrix @ axis).sum() for axis in axes.T]
    minus = [np.exp(-matrix @ axis).sum() for axis in axes.T]
    both = plus + minus
    return min(both) / max(both), min(plus) / max(plus)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("n", [40, 9000])  # in one block, and in several
def test_it_is_its_definition(n, centred):
    rows = np.random.default_rng(n).normal(0.1, 0.4, size=(n, 12)).astype(np.float32)
    found = partition_of(rows, centred=centred)
    moved = rows - rows.mean(axis=0, dtype=np.float64) if centred else rows
    two_sided, _ = slow(moved)
    assert found.value == pytest.approx(two_sided, rel=1e-6)
    assert found.log_value == pytest.approx(np.log(two_sided), rel=1e-6, abs=1e-9)
    assert found.value <= found.as_published <= 1.0
    assert (found.rows, found.width, found.centred) == (n, 12, centred)


def attainable(matrix):
    """Return every I(W) over one sign of each axis that some choice of signs would give."""
    matrix = matrix.astype(np.float64)
    axes = np.linalg.eigh(matrix.T @ matrix)[1]
    along = matrix @ axes
    sums = np.array([np.exp(along).sum(axis=0), np.exp(-along).sum(axis=0)])
    low, high = sums.min(axis=0), sums.max(axis=0)
    ends = np.sort(sums.ravel())
    found = []
    for smallest in ends:
        if smallest > high.min():  # the axis that has both below it would be smaller still
            continue
        for largest in ends[ends >= smallest]:
            inside = (low >= smallest) & (low <= largest) | (high >= smallest) & (
                high <= largest
            )
            if inside.all():
                found.append(smallest / largest)
    return np.array(found)


def test_as_published_is_one_of_the_signs_that_eigenvectors_may_have():
    rows = np.random.default_rng(0).normal(0.3, 0.5, size=(60, 4)).astype(np.float32)
    axes = np.linalg.eigh(rows.astype(np.float64).T @ rows)[1]
    possible = []
    for signs in np.ndindex(2, 2, 2, 2):
        sums = np.exp(rows @ (axes * (1 - 2 * np.array(signs)))).sum(axis=0)
        possible.append(sums.min() / sums.max())
    assert np.min(np.abs(np.array(possible) - partition_of(rows).as_published)) < 1e-6
    found = attainable(rows)
    assert all(np.min(np.abs(found - each)) < 1e-6 for each in possible)
    assert len(found) < 40


def test_untied_matrices_are_measured_both_raw_and_centred(untied):
    found = iso.matrices(untied)
    assert not found.shared["tied"]
    assert [(m.site, m.centred) for m in found] == [
        ("embed.weight", False), ("embed.weight", True),
        ("unembed.weight", False), ("unembed.weight", True),
    ]  # fmt: skip
    weights = subject_of(untied).sites.weights
    for each in found:
        matrix = weights[each.site].numpy().astype(np.float64)
        moved = matrix - matrix.mean(axis=0) if each.centred else matrix
        assert each.value == pytest.approx(slow(moved)[0], rel=1e-5)
    assert of(found, "unembed.weight").value != of(found, "embed.weight").value


def test_tied_matrices_are_measured_once_and_it_is_reported(speaker):
    found = iso.matrices(speaker)
    assert found.shared["tied"]
    assert "tied" in found.remarks[0]
    assert {m.site for m in found} == {"embed.weight"}


def test_a_random_cloud_to_compare_with_is_made_on_request(untied):
    found = of(iso.matrices(untied, against_random=True), "embed.weight")
    assert 0.0 < found.reference <= 1.0
    assert of(iso.matrices(untied), "embed.weight").reference is None


def test_a_model_without_matrices_says_so(normless):
    with pytest.raises(UndefinedError, match="a row for each token") as raised:
        iso.matrices(normless)
    assert raised.value.slug == "no-matrix"


def test_a_damaged_matrix_says_so():
    rows = np.ones((5, 3))
    rows[2, 1] = np.nan
    with pytest.raises(UndefinedError, match="got NaN or infinity"):
        partition_of(rows, "embed.weight")


# As the authors give them for the final checkpoint: src/README of isotropy_transformers.
ANCHOR = {
    ("embed.weight", False): 0.9584758,
    ("unembed.weight", False): 0.0830891,
    ("embed.weight", True): 0.9968441,
    ("unembed.weight", True): 0.9724734,
}


@pytest.mark.real
@pytest.mark.timeout(600)
def test_pythia_70m_has_the_four_numbers_of_machina_and_mercer(shared_models):
    folder = shared_models / "pythia-70m"
    if not folder.is_dir():
        pytest.skip("the weights of EleutherAI/pythia-70m are not in ISOSCOPE_MODELS")
    subject = subject_of(folder)
    found = iso.matrices(subject)
    assert not found.shared["tied"]
    for (site, centred), published in ANCHOR.items():
        each = of(found, site, centred=centred)
        matrix = subject.sites.weights[site].double().numpy()
        possible = attainable(matrix - matrix.mean(axis=0) if centred else matrix)
        # LAPACK chose the signs of their eigenvectors and chooses those of ours: either is
        # one of few possible values. Their sums were float32.
        assert np.min(np.abs(possible / published - 1)) < 1e-4, site
        assert np.min(np.abs(possible / each.as_published - 1)) < 1e-6, site
        assert each.value <= published * (1 + 1e-4)
        if centred:  # signs hardly matter about the mean
            assert each.as_published == pytest.approx(published, abs=0.02)


@pytest.mark.real
def test_minilm_is_far_more_isotropic_about_its_mean(minilm):
    found = iso.matrices(minilm)
    assert not found.shared["tied"]
    assert of(found, "embed.weight").value == pytest.approx(0.8434, abs=1e-4)
    assert of(found, "embed.weight", centred=True).value == pytest.approx(0.98817, abs=1e-4)
