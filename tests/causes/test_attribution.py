"""Planted worlds are explained as the definition says, and what is not known is left out."""

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, BandCells, Directions
from isoscope.causes import BandedDirections, CloudSums, attribute
from isoscope.errors import UndefinedError
from isoscope.hashing import named_documents

SHORT = {"documents": 1200, "length": 8}  # so that one sink a document is many rows


def shares(found):
    """Every share of an attribution by its name."""
    named = {"sinks": found.sinks, "mean": found.dependences.mean}
    named |= {name: each.shapley for name, each in found.dependences.causes.items()}
    return named | {"dimensions": found.dimensions.share}


@pytest.mark.parametrize("width", [64, 384])
@pytest.mark.parametrize(
    "mix",
    [
        {"dimensions": 0.7, "frequency": 0.3},
        {"dimensions": 0.5, "position": 0.3, "mean": 0.2},
    ],
    ids="-".join,
)
def test_mixtures_read_as_the_definition_says(plant, mix, width):
    world = plant(mix, width=width, documents=200, seed=5)
    truth, found = world.truth(), attribute(world.cloud())
    assert set(found.dimensions.named) == {3, 17}
    for name, share in shares(found).items():
        assert share.value == pytest.approx(truth[name], abs=0.05), name


@pytest.mark.parametrize(
    "mix",
    [{"sinks": 1.0}, {"sinks": 1.0, "mean": 1.0}, {"sinks": 1.0, "frequency": 1.0}],
    ids="-".join,
)
def test_sinks_have_what_the_mean_cosine_falls_by_without_them(plant, mix):
    world = plant(mix, strength=0.02, **SHORT)
    found = attribute(world.cloud())
    truth = world.truth()["sinks"]
    assert found.sinks.value == pytest.approx(truth, abs=0.03)
    assert found.sinks.low < truth < found.sinks.high
    assert found.sink_rows == 1200


def test_sinks_that_point_where_all_rows_do_take_nothing(plant):
    world = plant({"mean": 1.0}, strength=0.3, documents=100)
    world.sinks = world.positions == 0
    found = attribute(world.cloud())
    assert found.sinks.value == pytest.approx(0, abs=0.01)
    assert found.dependences.mean.value > 0.95


def test_where_only_sinks_have_a_direction_nothing_else_is_explained(plant):
    found = attribute(plant({"sinks": 1.0}, **SHORT).cloud())
    assert found.sinks.value == pytest.approx(1, abs=0.02)
    assert found.dimensions is None and found.dependences is None


def test_bands_that_point_apart_are_explained_though_all_rows_have_no_mean():
    rng = np.random.default_rng(0)
    place, document = np.tile([0, 1], 200), np.repeat(np.arange(200), 2)
    rows = rng.normal(size=(400, 16)) / 4 + np.where(place, 1, -1)[:, None] * np.eye(16)[0]
    block = ArrayBlock(rows, named_documents(document), place.astype(np.uint64))
    kinds = [kind(16) for kind in (Directions, BandCells)]
    for kind in kinds:
        kind.update(block)
    found = attribute(CloudSums.of(BandedDirections(*kinds)))
    assert found.sinks is None and found.dimensions is None
    assert found.dependences.both.value == pytest.approx(1, abs=0.02)


def test_the_fall_is_read_from_sampled_rows(plant):
    world = plant({"dimensions": 0.6, "mean": 0.4}, documents=100)
    found = attribute(world.cloud(), world.sample())
    before, after = found.zeroed
    truth = world.truth()
    assert before.value == pytest.approx(truth["C"], abs=0.01)
    assert after.low < truth["C"] * (1 - truth["dimensions"]) / (1 - 0.03) < after.high
    assert attribute(world.cloud()).zeroed is None


def test_plain_rows_have_shares_by_removal_alone(plant):
    world = plant({"mean": 0.4, "dimensions": 0.6})
    pointing = Directions(192)
    pointing.update(world.block(np.ones(len(world.rows), dtype=bool)))
    found = attribute(CloudSums.of(BandedDirections(pointing)))
    assert found.dependences is None
    assert found.sinks.value == 0
    assert found.dimensions.share.value == pytest.approx(0.6, abs=0.05)


def test_few_documents_have_shares_without_intervals(plant):
    found = attribute(plant({"mean": 1.0}, documents=6, length=400, strength=0.4).cloud())
    assert found.dependences.mean.value > 0.9
    assert all(share.low is None for share in shares(found).values())


def test_one_document_has_no_pairs(plant):
    with pytest.raises(UndefinedError, match="at least 2 documents"):
        attribute(plant({"mean": 1.0}, documents=1, length=400, strength=0.4).cloud())


def test_an_isotropic_cloud_has_nothing_to_explain(plant):
    with pytest.raises(UndefinedError, match="expected a mean cosine above zero"):
        attribute(plant({}).cloud())


def test_cuts_and_order_do_not_matter(plant):
    world = plant({"mean": 0.5, "frequency": 0.5}, documents=100)
    half = world.documents < 37
    parts = [world.seen(chosen) for chosen in (~half, half)]
    for mine, theirs in zip(*parts, strict=True):
        mine.merge(theirs)
    apart = shares(attribute(CloudSums.of(BandedDirections(*parts[0]))))
    for name, share in shares(attribute(world.cloud())).items():
        assert apart[name].value == pytest.approx(share.value, abs=1e-6)
