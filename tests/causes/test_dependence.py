"""What depends on frequency and position: planted worlds, and what must not matter."""

from dataclasses import replace

import numpy as np
import pytest

from isoscope.accumulate import ArrayBlock, BandCells, Directions
from isoscope.causes import BandedDirections, CloudSums
from isoscope.causes.dependence import dependences
from isoscope.causes.pairs import GroupSizes
from isoscope.hashing import named_documents


def found(cloud):
    return dependences(cloud, GroupSizes(cloud.sizes, cloud.documents))


def cloud_of(rows, documents, positions, frequency):
    block = ArrayBlock(
        rows,
        named_documents(documents),
        positions.astype(np.uint64),
        frequency=frequency.astype(np.int8),
    )
    kinds = [kind(block.width) for kind in (Directions, BandCells)]
    for kind in kinds:
        kind.update(block)
    return CloudSums.of(BandedDirections(*kinds))


def cone(share, *, documents=200, length=50, width=48, seed=0):
    """All rows share one vector, except those of the rarest band, which point anywhere."""
    rng = np.random.default_rng(seed)
    document = np.repeat(np.arange(documents), length)
    rare = np.zeros(len(document), dtype=bool)
    rare[rng.permutation(len(rare))[: round(share * len(rare))]] = True
    rows = np.where(rare[:, None], rng.normal(size=(len(rare), width)), np.eye(width)[0])
    return cloud_of(rows, document, np.tile(np.arange(length), documents), 3 - 3 * rare)


@pytest.mark.parametrize("share", [0.01, 0.049, 0.052, 0.2])
def test_a_share_of_rows_outside_the_cone_reads_as_that_share(share):
    seen = found(cone(share))
    for each in (seen.causes["frequency"].alone, seen.causes["frequency"].shapley, seen.both):
        assert each.value == pytest.approx(share, abs=0.002)
        assert each.low < each.value < each.high < each.low + 0.02
    assert seen.causes["position"].shapley.value == pytest.approx(0, abs=0.001)
    rare, usual = seen.causes["frequency"].bands
    assert rare.rows == pytest.approx(share)
    assert rare.contribution.value == pytest.approx(0, abs=0.005)
    assert usual.contribution.value == pytest.approx(1, abs=0.005)
    assert usual.cosine == pytest.approx(1)


def test_a_band_cut_into_equal_ones_changes_nothing(plant):
    world = plant({"mean": 0.5, "frequency": 0.5}, documents=100)
    frequency = world.bands[0]
    cut = np.where((frequency == 4) & (np.arange(len(frequency)) % 2 == 0), 0, frequency)
    cut[frequency < 4] = 1
    whole = np.where(cut == 0, 4, cut)
    before, after = (
        found(cloud_of(world.rows, world.documents, world.positions, each))
        for each in (whole, cut)
    )
    for name in ("alone", "first"):
        one, other = (getattr(each.causes["frequency"], name) for each in (before, after))
        assert one.value == pytest.approx(other.value, abs=0.01)


@pytest.mark.parametrize(
    "mix",
    [
        {"mean": 1.0},
        {"frequency": 1.0},
        {"position": 1.0},
        {"mean": 0.3, "frequency": 0.7},
        {"frequency": 0.5, "position": 0.5},
        {"mean": 0.25, "dimensions": 0.25, "frequency": 0.25, "position": 0.25},
    ],
    ids="-".join,
)
@pytest.mark.parametrize("ramp", [False, True], ids=["steps", "gradual"])
def test_planted_worlds_read_as_the_definition_says(plant, mix, ramp):
    world = plant(mix, ramp=ramp, width=96, documents=250, seed=3)
    truth, seen = world.truth(), found(world.cloud())
    assert seen.whole.value == pytest.approx(truth["T"], rel=0.05)
    assert seen.mean.value == pytest.approx(truth["mean"], abs=0.03)
    for cause, each in seen.causes.items():
        for name in ("first", "last", "alone"):
            value = getattr(each, name).value
            assert value == pytest.approx(truth[f"{cause} {name}"], abs=0.03)
        assert each.shapley.value == pytest.approx(truth[cause], abs=0.03)


def test_parts_add_up_exactly(plant):
    seen = found(plant({"frequency": 0.5, "position": 0.3, "mean": 0.2}).cloud())
    shapley = [each.shapley.value for each in seen.causes.values()]
    assert sum(shapley) == pytest.approx(seen.both.value)
    assert seen.both.value + seen.mean.value == pytest.approx(1)
    for each in seen.causes.values():
        assert sum(band.contribution.value for band in each.bands) == pytest.approx(1)
        assert sum(band.rows for band in each.bands) == pytest.approx(1)
        assert (each.first.value + each.last.value) / 2 == pytest.approx(each.shapley.value)


def test_frequent_words_at_the_beginning_show_as_first_and_not_as_last(plant):
    world = plant({"frequency": 1.0})
    rng = np.random.default_rng(0)
    order = np.lexsort(
        (world.tokens + 300 * rng.normal(size=len(world.tokens)), world.documents)
    )
    world.rows, world.tokens = world.rows[order], world.tokens[order]
    world.planted = world.planted[order]
    truth, seen = world.truth(), found(world.cloud())
    assert truth["position first"] > 0.05 and truth["position last"] < 0.01
    for name in ("first", "last"):
        value = getattr(seen.causes["position"], name).value
        assert value == pytest.approx(truth[f"position {name}"], abs=0.02)


def test_a_band_that_one_group_has_is_joined_with_its_neighbour_and_moves_little():
    cloud = cone(0.1, documents=32)
    lone = cloud.rows.copy()
    units = cloud.units.copy()
    lone[0, 1, 2], units[0, 1, 2] = 3, 3 * np.eye(48)[5]  # three rows of a band of their own
    seen, before = found(replace(cloud, rows=lone, units=units)), found(cloud)
    assert np.isfinite(seen.both.high)
    assert seen.both.value == pytest.approx(before.both.value, abs=3 / cloud.rows.sum() * 3)


def test_without_frequencies_position_has_the_whole_to_itself(plant):
    seen = found(plant({"position": 1.0}).cloud(counted=False))
    assert list(seen.causes) == ["position"]
    each = seen.causes["position"]
    assert each.alone == each.first == each.last == each.shapley == seen.both
