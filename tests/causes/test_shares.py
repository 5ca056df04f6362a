"""Shares in their order, and how much may be there without having been told."""

import numpy as np
import pytest

from isoscope.causes.attribution import ORDER, by_dimension, noise_by_dimensions, shares_of


def shares(world):
    cloud = world.cloud().join_small_bands()
    return cloud, shares_of(cloud, noise_by_dimensions(cloud))


def test_they_are_in_the_order_of_attribution_and_add_up_to_one(plant):
    _, found = shares(plant({"mean": 0.5, "position": 0.5}, documents=100))
    assert tuple(found.shares) == ORDER
    assert sum(found.shares.values()) == pytest.approx(1)


def test_dimensions_that_spread_causes_hide_are_seen_where_these_do_not_act(plant):
    mix = {"dimensions": 0.25, "frequency": 0.35, "position": 0.4}
    cloud, found = shares(plant(mix, width=64, seed=5))
    assert set(found.dimensions) == {3, 17}
    assert found.shares["dimensions"] == pytest.approx(0.25, abs=0.1)
    parts = by_dimension(cloud.total(), found.dimensions)
    assert sum(parts.values()) == pytest.approx(found.shares["dimensions"])


def test_a_narrow_cloud_says_how_much_of_it_dimensions_may_have_unseen(plant):
    _, narrow = shares(plant({"mean": 1.0}, width=32, documents=100))
    _, wide = shares(plant({"mean": 1.0}, width=512, documents=100))
    assert narrow.dimensions == wide.dimensions == ()
    assert wide.unseen["dimensions"] < 0.1 < narrow.unseen["dimensions"] < 0.6


def test_few_rows_may_hide_an_effect_and_many_do_not(plant):
    _, few = shares(plant({"mean": 1.0}, documents=30, strength=0.02))
    _, many = shares(plant({"mean": 1.0}, documents=1000, strength=0.02))
    assert few.shares["position"] == many.shares["position"] == 0
    assert many.unseen["position"] < 0.05 < few.unseen["position"]


def test_what_others_have_on_rogue_dimensions_is_in_doubt_only_if_there_are_any(plant):
    _, none = shares(plant({"mean": 1.0}, documents=100))
    _, two = shares(plant({"mean": 0.5, "dimensions": 0.5}, documents=100))
    assert none.doubt == 0
    assert two.doubt == pytest.approx(np.sqrt(4) * 0.5 / 190, rel=0.2)


def test_excluded_groups_are_explained_with_the_noise_of_the_whole(plant):
    cloud = plant({"mean": 0.5, "frequency": 0.5}, documents=100).cloud().join_small_bands()
    noise = noise_by_dimensions(cloud)
    whole, part = shares_of(cloud, noise), shares_of(cloud.without(0), noise)
    assert part.shares["frequency"] == pytest.approx(whole.shares["frequency"], abs=0.05)
    assert noise(()) is noise(())
