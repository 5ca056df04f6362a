"""Measures of gradients: planted truth, controls against their definition, p-values."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Gradients, ShuffledGradients, Tally
from isoscope.accumulate.survey import Survey
from isoscope.errors import UndefinedError
from isoscope.hashing import named_documents
from isoscope.measures.subspaces import (
    Cloud,
    chance,
    complement,
    draw_complement,
    draw_random,
    gaussian,
)
from isoscope.measures.tangent_anisotropy import tangent_anisotropy
from isoscope.measures.tangent_energy import tangent_energy
from isoscope.measures.tangent_energy_ratio import tangent_energy_ratio
from isoscope.measures.view.gradients import AgainstRandom, TangentEnergies, TangentScatters
from isoscope.study.measure_choice import gradient_measures, measure_names
from isoscope.study.reading import finalize_all, read_survey

DOCUMENTS, EACH, WIDTH, RANK = 60, 10, 12, 3


def orthonormal(seed, width=WIDTH, rank=RANK):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(width, rank)))[0]


def planted(share, basis, seed=0, rows=DOCUMENTS * EACH):
    """Return gradients of which a known share of the energy lies in a subspace."""
    rng = np.random.default_rng(seed)
    inside = rng.normal(size=(rows, basis.shape[1])) @ basis.T
    outside = rng.normal(size=(rows, len(basis))) * np.linspace(2, 0.5, len(basis))
    outside -= outside @ basis @ basis.T
    energy = [np.square(each).sum() for each in (inside, outside)]
    return inside * np.sqrt(share / energy[0]) + outside * np.sqrt((1 - share) / energy[1])


def survey_of(rows, basis, shuffled=None, frequency=None):
    documents = named_documents(np.repeat(np.arange(len(rows) // EACH), EACH))
    places = np.arange(len(rows), dtype=np.uint64)
    held = {Tally: Tally(len(basis)), Gradients: Gradients(len(basis), basis)}
    pairs = [(held[Tally], rows), (held[Gradients], rows)]
    if shuffled is not None:
        held[ShuffledGradients] = ShuffledGradients(len(basis), basis)
        pairs.append((held[ShuffledGradients], shuffled))
    for part, each in pairs:
        part.update(ArrayBlock(each, documents, places, frequency=frequency))
    return Survey({("grad.0", "all"): held})


def read(*args, **how):
    options = {key: how.pop(key) for key in ("controls", "zeta") if key in how}
    found, left_out = read_survey(survey_of(*args, **how), gradient_measures(), **options)
    return {(each.measure, each.group): each for each in found}, left_out


def isoscore_star(rows, dimensions, zeta=0.2):
    """The definition, from the eigenvalues of the shrunk covariance."""
    values = np.linalg.eigvalsh(np.cov(rows.T))[-dimensions:]
    values = (1 - zeta) * values + zeta * values.mean()
    return (values.sum() ** 2 / np.square(values).sum() - 1) / (dimensions - 1)


def rise(rows, basis):
    left = rows - rows @ basis @ basis.T
    return isoscore_star(left, WIDTH - basis.shape[1]) - isoscore_star(rows, WIDTH)


@pytest.mark.parametrize("share", [0.02, 0.25, 0.9, 0.9999])
def test_a_planted_share_is_read(share):
    basis = orthonormal(0)
    found, _ = read(planted(share, basis), basis, controls=20)
    energy = found["tangent-energy", ""]
    assert energy.value == pytest.approx(share, rel=1e-6)
    assert energy.low <= share <= energy.high
    ratio = found["tangent-energy-ratio", "random"].value
    assert ratio == pytest.approx(share * WIDTH / RANK, rel=1e-6)
    against = (1 - share) * RANK / (WIDTH - RANK)
    ratio = found["tangent-energy-ratio", "complement"].value
    assert ratio == pytest.approx(share / against, rel=1e-6)
    p = found["tangent-energy-p", "random"].value
    assert p == 1 if share < 0.1 else p == 1 / 21 or share == RANK / WIDTH


def test_the_rise_of_isoscore_star_is_that_of_the_stored_gradients():
    basis = orthonormal(0)
    rows = planted(0.6, basis) + 0.01
    other = planted(0.3, basis, seed=5)
    found, _ = read(rows, basis, shuffled=other, controls=50)
    expected = rise(rows, basis)
    assert found["tangent-anisotropy", ""].value == pytest.approx(expected, rel=1e-9)
    shuffled = expected - rise(other, basis)
    assert found["tangent-anisotropy", "shuffled"].value == pytest.approx(shuffled, rel=1e-9)
    energies = [np.square(each @ basis).sum() / np.square(each).sum() for each in (rows, other)]
    ratio = found["tangent-energy-ratio", "shuffled"].value
    assert ratio == pytest.approx(energies[0] / energies[1], rel=1e-9)
    for group in ("", "complement", "random", "shuffled"):
        reading = found["tangent-anisotropy", group]
        assert reading.low < reading.value < reading.high


def test_drawn_subspaces_hold_what_stored_gradients_have_in_them():
    """Controls are computed in an eigenbasis; here they are turned back into subspaces."""
    basis = orthonormal(1)
    rows = planted(0.5, basis) + 0.02
    mean = rows.mean(axis=0)
    scatter = (rows - mean).T @ (rows - mean)
    cloud = Cloud(len(rows), mean, scatter)
    energy = np.square(rows).sum()
    axes = np.linalg.eigh(scatter)[1]
    rest = complement(basis)
    turned = rest @ np.linalg.eigh(rest.T @ scatter @ rest)[1]
    for drawn, frame in (
        (draw_random(cloud, RANK, 7, 0.2, seed=3), axes),
        (draw_complement(cloud, basis, 7, 0.2, seed=3), turned),
    ):
        (random,) = gaussian(frame.shape[1], RANK, 7, seed=3)
        for number in range(7):
            own = np.linalg.qr(frame @ random[number])[0]
            share = np.square(rows @ own).sum() / energy
            assert drawn.shares[number] == pytest.approx(share, rel=1e-9)
            assert drawn.rises[number] == pytest.approx(rise(rows, own), rel=1e-7)


def test_a_white_cloud_has_no_rise():
    basis = orthonormal(0)
    cloud = Cloud(100.0, np.zeros(WIDTH), np.eye(WIDTH))
    assert cloud.rise(basis, 0.2) == pytest.approx(0.0, abs=1e-12)
    assert draw_random(cloud, RANK, 5, 0.2, seed=0).rises == pytest.approx(0.0, abs=1e-9)


def test_tiny_gradients_read_as_large_ones():
    basis = orthonormal(0)
    rows = planted(0.4, basis)
    large, _ = read(rows, basis, controls=20)
    tiny, _ = read(1e-12 * rows, basis, controls=20)
    for where, reading in large.items():
        assert tiny[where].value == pytest.approx(reading.value, rel=1e-8), where


def test_p_values_of_random_controls_are_uniform():
    """Twenty controls give 21 values of p: a chi-square over 21 cells, 3,000 simulations."""
    rng = np.random.default_rng(0)
    counts = np.zeros(21)
    for seed in range(3000):
        rows = rng.normal(size=(40, 8)) * np.arange(1, 9) ** -1.0 + 0.2
        mean = rows.mean(axis=0)
        cloud = Cloud(40.0, mean, (rows - mean).T @ (rows - mean))
        basis = np.linalg.qr(rng.normal(size=(8, 3)))[0]
        drawn = draw_random(cloud, 3, 20, 0.2, seed=seed).shares
        counts[round(21 * chance(cloud.share(basis), drawn)) - 1] += 1
    expected = 3000 / 21
    square = np.square(counts - expected).sum() / expected
    assert square < 45.3  # 99.9 % point of chi-square with 20 degrees of freedom
    assert counts[0] / 3000 == pytest.approx(1 / 21, abs=0.015)


def test_controls_of_the_complement_end_at_half_of_the_width():
    basis = orthonormal(0, rank=7)
    found, _ = read(planted(0.5, basis), basis, controls=20)
    groups = {group for measure, group in found if measure == "tangent-energy-ratio"}
    assert groups == {"random"}
    cloud = Cloud(9.0, np.zeros(WIDTH), np.eye(WIDTH))
    with pytest.raises(UndefinedError, match="at most 6, got 7"):
        draw_complement(cloud, basis, 5, 0.2, seed=0)


def test_bands_are_groups():
    basis = orthonormal(0)
    frequent, rare = planted(0.9, basis, rows=300), planted(0.1, basis, seed=1, rows=300)
    rows = np.empty((600, WIDTH))
    rows[::2], rows[1::2] = frequent, rare
    found, _ = read(rows, basis, frequency=np.tile([4, 1], 300), controls=20)
    values = {
        group: each.value for (name, group), each in found.items() if name == "tangent-energy"
    }
    assert values["frequency above 1e-2"] == pytest.approx(0.9, rel=1e-9)
    assert values["frequency 1e-5 to 1e-4"] == pytest.approx(0.1, rel=1e-9)
    assert values[""] == pytest.approx(0.5, rel=1e-9)


def test_gradients_that_are_zero_are_no_number():
    basis = orthonormal(0)
    found, left_out = read(np.zeros((DOCUMENTS * EACH, WIDTH)), basis, controls=20)
    assert not found
    assert set(left_out) == set(gradient_measures())


def test_they_are_not_measures_of_rows():
    assert len(gradient_measures()) == 3
    assert not set(gradient_measures()) & set(measure_names(None, all=True, text=True))


def test_they_do_not_depend_on_rotation_or_scale():
    basis = orthonormal(0)
    rows = planted(0.4, basis)
    turn = orthonormal(9, rank=WIDTH)
    for measure, view in (
        (tangent_energy, TangentEnergies),
        (tangent_energy_ratio, AgainstRandom),
        (tangent_anisotropy, TangentScatters),
    ):
        values = []
        for each, own in ((rows, basis), (rows @ turn, turn.T @ basis), (9 * rows, basis)):
            here = survey_of(each, own).held["grad.0", "all"]
            values.append(measure(finalize_all(here).view(view)))
        assert values == pytest.approx([values[0]] * 3, rel=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e-8, 1e8])
def test_nothing_but_rounding_is_left_without_all_directions_there_are(scale):
    turn = orthonormal(4, 6, 6)
    basis, others = turn[:, :3], turn[:, 3:]  # gradients lie in the complement, all of it
    rows = scale * np.random.default_rng(3).normal(size=(50, 3)) @ others.T
    mean = rows.mean(axis=0)
    cloud = Cloud(50.0, mean, (rows - mean).T @ (rows - mean))
    with pytest.raises(UndefinedError, match="all of it lies in the proxy"):
        draw_complement(cloud, basis, 20, 0.1, 0)
    with pytest.raises(UndefinedError, match="all of it lies in the proxy"):
        cloud.rise(others, 0.1)
    assert cloud.rise(basis, 0.1) != 0
