"""A cloud: groups of rows and sinks put side by side, small bands joined."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, Directions
from isoscope.causes import BandedDirections, CloudSums
from isoscope.causes.cloud import design_of
from isoscope.hashing import named_documents


def pointing(rows, documents):
    seen = Directions(rows.shape[1])
    seen.update(ArrayBlock(rows, named_documents(documents)))
    return seen


def cosine(rows):
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return (units @ units.T)[~np.eye(len(rows), dtype=bool)].mean()


def test_its_mean_cosine_is_that_of_rows_and_sinks_together():
    rng = np.random.default_rng(0)
    rows, sinks = rng.normal(size=(60, 5)) + 0.5, rng.normal(size=(7, 5)) + 2
    cloud = CloudSums.of(
        BandedDirections(pointing(rows, np.repeat(np.arange(6), 10))),
        pointing(sinks, np.arange(7) % 6),
    )
    assert cloud.total().mean_cosine == pytest.approx(cosine(np.concatenate([rows, sinks])))
    assert cloud.sizes.sum() == 67


def test_leaving_out_a_group_leaves_out_its_rows_and_its_sinks():
    rng = np.random.default_rng(1)
    rows, sinks = rng.normal(size=(60, 5)) + 0.5, rng.normal(size=(6, 5)) + 2
    documents = np.repeat(np.arange(6), 10)
    cloud = CloudSums.of(
        BandedDirections(pointing(rows, documents)), pointing(sinks, np.arange(6))
    )
    keys = np.unique(named_documents(np.arange(6)))
    here = named_documents(documents) != keys[2]
    kept = np.concatenate([rows[here], sinks[named_documents(np.arange(6)) != keys[2]]])
    assert cloud.without(2).total().mean_cosine == pytest.approx(cosine(kept))


def test_sinks_of_few_documents_join_the_groups_of_many():
    rng = np.random.default_rng(2)
    rows, sinks = rng.normal(size=(100, 4)), rng.normal(size=(3, 4))
    many, few = pointing(rows, np.arange(100)), pointing(sinks, np.arange(3))
    assert many.folded and not few.folded
    cloud = CloudSums.of(BandedDirections(many), few)
    assert cloud.groups == len(many.keys)
    assert cloud.sink_rows.sum() == 3


def test_bands_of_few_rows_are_joined_with_their_neighbours(plant):
    cloud = plant({"mean": 1.0}, documents=60).cloud()
    joined = cloud.join_small_bands()
    shares = joined.crossed.sum(axis=0) / joined.crossed.sum()
    assert shares.sum(axis=0).min() >= 0.05 and shares.sum(axis=1).min() >= 0.05
    assert joined.crossed.sum() == cloud.crossed.sum()
    np.testing.assert_allclose(joined.total().unit, cloud.total().unit)
    assert joined.total().mean_cosine == pytest.approx(cloud.total().mean_cosine)


def test_the_bands_of_frequency_and_of_position_add_up_to_the_same_rows(plant):
    totals = plant({"frequency": 1.0}, documents=60).cloud().total()
    split = len(totals.crossed)
    np.testing.assert_allclose(
        totals.units[:split].sum(axis=0), totals.units[split:].sum(axis=0), atol=1e-2
    )
    design = design_of(totals.crossed)
    np.testing.assert_array_equal(design, design.T)
    assert design[:split, :split].sum() == totals.rows


def test_the_designs_of_groups_add_up_to_that_of_the_whole(plant):
    cloud = plant({"mean": 1.0}, documents=60).cloud()
    np.testing.assert_allclose(
        design_of(cloud.crossed).sum(axis=0), design_of(cloud.total().crossed)
    )


def test_joined_bands_lie_where_their_rows_are_and_edges_stay(plant):
    cloud = plant({"mean": 1.0}, documents=60).cloud()
    joined = cloud.join_small_bands()
    position = joined.scales[1]
    assert (np.diff(position.middles) > 0).all()
    assert (position.first, position.last) == (-0.5, 7.5)  # the last band begins at 64
    assert 6 < position.middles[-1] < 7  # a few rows of it, joined with those from 32 on
