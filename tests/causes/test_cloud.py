"""A cloud: groups of rows and sinks put side by side, by pair of bands."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Directions
from isoscope.causes import BandedDirections, CloudSums
from isoscope.causes.pairs import mean_cosine
from isoscope.hashing import named_documents


def pointing(rows, documents):
    seen = Directions(rows.shape[1])
    seen.update(ArrayBlock(rows, named_documents(documents)))
    return seen


def cosine(rows, documents):
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return (units @ units.T)[documents[:, None] != documents].mean()


def test_rows_and_sinks_of_a_document_are_in_one_group():
    rng = np.random.default_rng(0)
    rows, sinks = rng.normal(size=(60, 5)) + 0.5, rng.normal(size=(7, 5)) + 2
    documents = np.repeat(np.arange(6), 10), np.arange(7) % 6
    cloud = CloudSums.of(
        BandedDirections(pointing(rows, documents[0])), pointing(sinks, documents[1])
    )
    assert cloud.sizes.sum() == 67
    found = mean_cosine(cloud.units.sum(axis=(1, 2)) + cloud.sinks, cloud.sizes)
    both, documents = np.concatenate([rows, sinks]), np.concatenate(documents)
    assert found[0] == pytest.approx(cosine(both, documents))
    keys = np.unique(named_documents(np.arange(6)))
    kept = named_documents(documents) != keys[2]
    assert found[3] == pytest.approx(cosine(both[kept], documents[kept]))


def test_the_bands_of_frequency_and_of_position_add_up_to_the_same_rows(plant):
    world = plant({"frequency": 1.0}, documents=60)
    cloud, (frequency, position) = world.cloud(), world.bands
    for cause, labels, first in (("frequency", frequency, 0), ("position", position, 5)):
        numbers, units, rows = cloud.bands(cause)
        assert rows.sum(axis=0).tolist() == np.bincount(labels).tolist()
        assert numbers[0] == first and len(numbers) == rows.shape[1]
        np.testing.assert_allclose(units.sum(axis=1), cloud.units.sum(axis=(1, 2)), atol=1e-5)


def test_sinks_of_few_documents_join_the_groups_of_many():
    rng = np.random.default_rng(2)
    rows, sinks = rng.normal(size=(100, 4)), rng.normal(size=(3, 4))
    many, few = pointing(rows, np.arange(100)), pointing(sinks, np.arange(3))
    assert many.folded and not few.folded
    cloud = CloudSums.of(BandedDirections(many), few)
    assert cloud.groups == len(many.keys)
    assert cloud.sink_rows.sum() == 3
