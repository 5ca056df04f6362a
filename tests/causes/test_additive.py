"""The additive model: bands that differ are told, bands that do not are all the same."""

from dataclasses import replace

import numpy as np
import pytest

from isoscope.causes.additive import fit, largest_of_noise
from isoscope.causes.dimensions import mask_without


def model(world):
    cloud = world.cloud().join_small_bands()
    return cloud, fit(cloud, mask_without(cloud.units.shape[2], ()))


def test_bands_that_do_not_differ_have_no_lines(plant):
    found = [model(plant({"mean": 1.0}, documents=100, seed=seed))[1] for seed in range(20)]
    told = [np.abs(each.products[1:, 1:]).max() > 0 for each in found]
    assert sum(told) <= 2  # one in a hundred, of two kinds of bands


def test_the_mean_is_that_of_all_rows(plant):
    cloud, found = model(plant({"mean": 0.5, "frequency": 0.5}, documents=100))
    whole = cloud.total()
    np.testing.assert_allclose(found.lines[0], whole.unit / whole.rows, atol=1e-8)
    assert found.products[0, 0] == pytest.approx(whole.mean_cosine, rel=0.02)


def test_products_are_those_of_bands_of_rows_reported_one_by_one(plant):
    world = plant({"mean": 0.6, "position": 0.4}, documents=300)
    _, found = model(world)
    units = world.rows / np.linalg.norm(world.rows, axis=1, keepdims=True)
    early, late = units[world.positions < 16], units[world.positions >= 16]
    last = np.zeros(len(found.products))
    last[[0, -1]] = 1
    first = np.zeros(len(found.products))
    first[[0, found.blocks[1].start]] = 1
    across = early.mean(axis=0) @ late.mean(axis=0)
    assert first @ found.products @ last == pytest.approx(across, rel=0.1)
    within = np.sum(late.sum(axis=0) ** 2) - len(late)
    within /= len(late) * (len(late) - 1)
    assert last @ found.products @ last == pytest.approx(within, rel=0.1)


def test_position_is_reported_and_frequency_is_not(plant):
    _, found = model(plant({"position": 1.0}, documents=200))
    frequency, position = found.blocks
    assert np.linalg.matrix_rank(found.products[position, position], tol=1e-6) == 1
    assert np.abs(found.products[frequency, frequency]).max() == 0


def test_documents_that_have_topics_do_not_make_differences_between_bands(plant):
    told = 0
    for seed in range(20):
        world = plant({"mean": 1.0}, documents=60, seed=seed)
        topic = np.random.default_rng(seed).normal(size=(60, 192)) / np.sqrt(192)
        norms = np.linalg.norm(world.rows, axis=1, keepdims=True)
        world.rows = (world.rows / norms + topic[world.documents]).astype(np.float32)
        told += np.abs(model(world)[1].products[1:, 1:]).max() > 0
    assert told <= 3


def test_with_few_documents_rows_are_taken_as_independent(plant):
    _, found = model(plant({"position": 1.0}, documents=6, length=400))
    _, position = found.blocks
    assert found.products[position, position].max() > 0


def test_a_band_that_is_left_without_rows_is_not_set_apart(plant):
    cloud = plant({"position": 1.0}, documents=100).cloud().join_small_bands()
    crossed = cloud.crossed.copy()
    crossed[:, :, -1] = 0
    units = cloud.units.copy()
    units[:, -1] = 0
    found = fit(replace(cloud, crossed=crossed, units=units), mask_without(192, ()))
    assert np.abs(found.lines[-1]).max() == 0
    assert np.abs(found.uncleaned[-1, :-1]).max() < 1e-12


def test_over_the_dimensions_kept_only(plant):
    cloud = plant({"dimensions": 1.0}, documents=100).cloud().join_small_bands()
    left = fit(cloud, mask_without(192, (3, 17)))
    assert left.lines.shape[1] == 190
    assert abs(left.products[0, 0]) < 0.002


@pytest.mark.parametrize(("bands", "spheres"), [(4, 64), (4, 768), (12, 192)])
def test_noise_exceeds_the_limit_once_in_a_hundred_times(bands, spheres):
    rng = np.random.default_rng(bands * spheres)
    limit = largest_of_noise(bands, spheres)
    above = 0
    for _ in range(500):
        noise = rng.normal(size=(bands, spheres)) / np.sqrt(spheres)
        above += np.linalg.eigvalsh(noise @ noise.T)[-1] > limit
    assert above <= 12
