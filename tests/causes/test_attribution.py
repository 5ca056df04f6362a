"""Planted worlds are explained rightly: single causes, mixtures, and what is not known."""

import numpy as np
import pytest

from isoscope.accumulate import Directions
from isoscope.causes import ORDER, BandedDirections, CloudSums, attribute
from isoscope.errors import UndefinedError
from isoscope.hashing import named_documents

SHORT = {"documents": 2500, "length": 8}  # so that one sink a document is many rows
MIXTURES = [
    {"mean": 0.5, "dimensions": 0.5},
    {"mean": 0.7, "frequency": 0.3},
    {"mean": 0.3, "frequency": 0.7},
    {"mean": 0.5, "position": 0.5},
    {"dimensions": 0.7, "frequency": 0.3},
    {"dimensions": 0.3, "position": 0.7},
    {"frequency": 0.5, "position": 0.5},
    {"mean": 0.25, "dimensions": 0.25, "frequency": 0.25, "position": 0.25},
]


def assert_as_planted(world, within):
    found = attribute(world.cloud())
    values = {cause: share.value for cause, share in found.shares.items()}
    assert tuple(values) == ORDER
    assert sum(values.values()) == pytest.approx(1)
    for cause, value in values.items():
        assert value == pytest.approx(world.truth.get(cause, 0.0), abs=within), values
    return found


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("cause", ["mean", "dimensions", "frequency", "position"])
def test_a_single_cause_has_nine_tenths(plant, cause, seed):
    found = assert_as_planted(plant({cause: 1.0}, seed=seed), 0.1)
    assert found.shares[cause].value >= 0.9


def test_one_sink_a_document_has_nine_tenths(plant):
    found = assert_as_planted(plant({"sinks": 1.0}, **SHORT), 0.1)
    assert found.shares["sinks"].value >= 0.9
    assert found.sink_rows == 2500


@pytest.mark.parametrize("documents", [50, 400])
@pytest.mark.parametrize("width", [64, 192])
@pytest.mark.parametrize("cause", ["frequency", "position"])
def test_a_gradual_effect_has_nine_tenths(plant, cause, width, documents):
    how = {"width": width, "documents": documents, "seed": 11}
    found = attribute(plant({cause: 1.0}, ramp=True, **how).cloud())
    assert found.shares[cause].value >= 0.9


@pytest.mark.parametrize("width", [32, 96, 768])
@pytest.mark.parametrize("cause", ["mean", "dimensions", "frequency", "position"])
def test_a_single_cause_has_nine_tenths_at_any_width(plant, cause, width):
    world = plant({cause: 1.0}, width=width, documents=60, seed=14)
    assert attribute(world.cloud()).shares[cause].value >= 0.9


@pytest.mark.parametrize("width", [64, 96])
@pytest.mark.parametrize(
    "mix",
    [{"dimensions": 0.3, "position": 0.7}, dict.fromkeys(ORDER[1:], 0.25)],
    ids=["two", "four"],
)
def test_mixtures_are_reported_where_there_are_few_dimensions(plant, mix, width):
    assert_as_planted(plant(mix, width=width, seed=13), 0.1)


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_gradual_effects_among_others_are_reported_within_ten_points(plant, seed):
    parts = np.random.default_rng(seed).dirichlet(np.ones(4))
    mix = dict(zip(ORDER[1:], map(float, parts), strict=True))
    assert_as_planted(plant(mix, width=384, documents=200, ramp=True, seed=seed), 0.1)


@pytest.mark.parametrize("mix", MIXTURES, ids=lambda mix: "-".join(mix))
def test_mixtures_are_reported_within_ten_points(plant, mix):
    assert_as_planted(plant(mix), 0.1)


@pytest.mark.parametrize("others", [("mean",), ("frequency",), ("mean", "dimensions")])
def test_sinks_among_other_causes_are_reported_within_ten_points(plant, others):
    mix = {"sinks": 1.0} | {cause: 1 / len(others) for cause in others}
    assert_as_planted(plant(mix, strength=0.02, **SHORT), 0.1)


def test_rogue_dimensions_are_named_with_their_shares(plant):
    found = attribute(plant({"dimensions": 0.6, "mean": 0.4}).cloud())
    assert set(found.dimensions) == {3, 17}
    assert sum(found.dimensions.values()) == pytest.approx(found.shares["dimensions"].value)


def test_sinks_that_point_where_all_rows_do_take_nothing_from_the_mean(plant):
    world = plant({"mean": 1.0}, strength=0.3)
    world.sinks = world.positions == 0
    found = attribute(world.cloud())
    assert found.shares["sinks"].value == pytest.approx(0, abs=0.01)
    assert found.shares["mean"].value > 0.95


def test_frequent_words_at_the_beginning_do_not_make_a_position_effect_of_frequency(plant):
    world = plant({"frequency": 1.0})
    rng = np.random.default_rng(0)
    order = np.lexsort(
        (world.tokens + 300 * rng.normal(size=len(world.tokens)), world.documents)
    )
    world.rows, world.tokens = world.rows[order], world.tokens[order]
    assert attribute(world.cloud()).shares["frequency"].value >= 0.9


def test_intervals_lie_around_the_share_and_are_narrow(plant):
    world = plant({"mean": 0.5, "dimensions": 0.5})
    found = attribute(world.cloud())
    share = found.shares["dimensions"]
    assert share.low < share.value < share.high < share.low + 0.2


def test_dimensions_too_small_to_stand_out_are_within_the_interval(plant):
    world = plant({"mean": 0.8, "dimensions": 0.2}, width=32)
    found = attribute(world.cloud())
    assert found.dimensions == {}
    for cause in ("dimensions", "mean"):
        share = found.shares[cause]
        assert share.low <= world.truth[cause] <= share.high


def test_without_counts_frequency_is_not_reported(plant):
    found = attribute(plant({"position": 1.0}).cloud(counted=False))
    assert tuple(found.shares) == ("sinks", "dimensions", "position", "mean")
    assert found.shares["position"].value >= 0.9
    assert found.frequency_bands == ()


def test_plain_rows_are_explained_by_dimensions_and_mean(plant):
    world = plant({"mean": 0.4, "dimensions": 0.6})
    pointing = Directions(192)
    pointing.update(world.block(np.ones(len(world.rows), dtype=bool)))
    found = attribute(CloudSums.of(BandedDirections(pointing)))
    assert tuple(found.shares) == ("sinks", "dimensions", "mean")
    assert found.shares["dimensions"].value == pytest.approx(0.6, abs=0.05)
    assert found.shares["mean"].value == pytest.approx(0.4, abs=0.05)


def test_few_documents_have_shares_without_intervals(plant):
    found = attribute(plant({"mean": 1.0}, documents=6, length=400, strength=0.4).cloud())
    assert found.shares["mean"].value > 0.9
    assert found.shares["mean"].low is None


def test_an_isotropic_cloud_has_nothing_to_explain(plant):
    with pytest.raises(UndefinedError, match="expected a mean cosine above zero"):
        attribute(plant({}).cloud())


def test_cuts_and_order_do_not_matter(plant):
    world = plant({"mean": 0.5, "frequency": 0.5}, documents=100)
    half = world.documents < 37
    parts = [world.seen(chosen) for chosen in (~half, half)]
    for mine, theirs in zip(*parts, strict=True):
        mine.merge(theirs)
    apart, whole = (
        attribute(CloudSums.of(BandedDirections(*parts[0]))),
        attribute(world.cloud()),
    )
    for cause in ORDER:
        assert apart.shares[cause].value == pytest.approx(whole.shares[cause].value, abs=1e-6)
    assert len(np.unique(named_documents(world.documents))) == whole.documents
