"""Which accumulators measures need, and what reading a site gives."""

import numpy as np
import pytest

import isoscope
from isoscope.accumulate import (
    ArrayBlock,
    BandCells,
    CentredDirections,
    Copies,
    Directions,
    Groups,
    Moments,
    Norms,
    Partitions,
    Reservoir,
    Sentences,
    Sinks,
    Tally,
    Vocabulary,
)
from isoscope.measures import MEASURES
from isoscope.site import Site
from isoscope.study.lanes import run
from isoscope.study.reading import (
    finalize_all,
    kinds_for,
    measurable,
    read_place,
    read_survey,
    read_values,
    second_passes,
)
from isoscope.types import Chunk

PLACE = ("rows", "all")
EVERY = tuple(m.name for m in MEASURES.values() if m.offered not in ("heads", "gradients"))


def accumulated(names, rows):
    block = ArrayBlock(rows)
    here = {kind: kind(rows.shape[1]) for kind in kinds_for(names) if kind not in SECOND}
    for accumulator in here.values():
        accumulator.update(block)
    return here


SECOND = (CentredDirections, Partitions)


def cloud(n=200, d=6):
    return np.random.default_rng(0).normal(size=(n, d)) + 0.5


def test_a_measure_of_directions_needs_no_covariance():
    assert set(kinds_for(["mean-cosine"])) == {Tally, Copies, Directions}


def test_a_value_alone_needs_no_groups_and_nothing_for_warnings():
    assert set(kinds_for(["mean-cosine"], intervals=False)) == {Directions}
    assert set(kinds_for(["isoscore"], intervals=False)) == {Moments}
    assert Groups in kinds_for(["mean-share"], intervals=False)  # the value is made of them


@pytest.mark.parametrize("documents", [False, True])
def test_a_value_alone_is_the_value_of_the_reading(documents):
    rows = cloud(600, 12) * np.arange(1, 13) ** -0.5
    rows[:, -1] = 1e-4 * rows[:, 0]  # an eigenvalue of zero, but for rounding
    keys = np.repeat(np.arange(60, dtype=np.uint64), 10) * np.uint64(7) if documents else None
    tokens = np.arange(600) % 40
    positions = np.tile(np.arange(10, dtype=np.uint64), 60)
    block = ArrayBlock(rows, keys, positions if documents else None, tokens=tokens)
    first = [name for name in EVERY if not MEASURES[name].second_pass]
    read = []
    for intervals in (True, False):
        here = {kind: kind(12) for kind in kinds_for(first, intervals=intervals)}
        for accumulator in here.values():
            accumulator.update(block)
        if intervals:
            found, _ = read_place(PLACE, here, first, run="", options={})
            read.append({r.measure: r.value for r in found if r.measure in first})
        else:
            read.append(read_values(finalize_all(here, intervals=False), first))
    rankmes = [each.pop("rankme") for each in read]  # takes the root of that eigenvalue
    assert rankmes[0] == pytest.approx(rankmes[1], rel=1e-7)
    assert read[0] == pytest.approx(read[1], rel=1e-9)
    assert len(read[1]) > 20


def test_a_second_pass_needs_what_it_starts_from_and_what_stands_in_for_it():
    needed = set(kinds_for(["mean-cosine-centred"]))
    assert {CentredDirections, Moments, Reservoir} <= needed


def test_the_order_of_names_does_not_change_the_order_of_accumulators():
    assert kinds_for(EVERY) == kinds_for(EVERY[::-1])


OF_STREAM = {Vocabulary, Sentences, BandCells, Sinks}
TEXT = [m.name for m in MEASURES.values() if m.default or m.offered == "text"]


@pytest.mark.parametrize(
    "site",
    [
        "resid.3",
        "enc.norm.out",
        "embed",
        "pooled",
        "attn.0",
        "mlp.9",
        "rows",
        "stage.1",
        "my.q",
    ],
)
def test_most_sites_collect_what_they_always_did(site):
    assert kinds_for(TEXT, causes=True, site=site) == kinds_for(TEXT, causes=True)
    assert set(kinds_for(TEXT, causes=True)) >= OF_STREAM


@pytest.mark.parametrize(
    "site", ["q.3.11", "k", "dec.v.0.1", "grad.2", "gradw.h.0.weight", "embed.weight"]
)
def test_heads_gradients_and_matrices_do_without_what_tokens_of_a_stream_need(site):
    kinds = kinds_for(TEXT, causes=True, site=site)
    assert set(kinds) == set(kinds_for(TEXT, causes=True)) - OF_STREAM
    assert set(kinds) == {Tally, Moments, Groups, Directions, Norms, Reservoir, Copies}
    assert kinds == kinds_for(TEXT, causes=True, site=Site.parse(site))


def test_a_measure_that_was_named_has_what_it_needs_everywhere():
    kinds = kinds_for(TEXT, causes=True, site="q.3.11", named=["self-similarity"])
    assert OF_STREAM & set(kinds) == {Vocabulary}
    assert set(kinds_for(["mean-cosine"], site="q.0.0")) == {Tally, Copies, Directions}


def test_a_head_says_that_a_measure_was_not_collected_there():
    rows = cloud()
    here = {kind: kind(6) for kind in kinds_for(TEXT, site="q.0.0")}
    for accumulator in here.values():
        accumulator.update(ArrayBlock(rows))
    names = ["mean-cosine", "self-similarity"]
    readings, left_out = read_place(("q.0.0", "all"), here, names, run="", options={})
    assert [reading.measure for reading in readings] == ["mean-cosine"]
    reason = "not collected at q sites unless named: vocabulary"
    assert left_out == {"self-similarity": reason}
    _, left_out = read_place(("resid.0", "all"), here, names, run="", options={})
    assert left_out["self-similarity"].startswith("a measure by token type needs rows with")


def test_a_matrix_reads_the_same_without_what_belongs_to_documents():
    rows, found = cloud(), []
    for site in (None, "embed.weight"):
        kinds = [k for k in kinds_for(TEXT, causes=True, site=site) if not k.by_token]
        here = {kind: kind(6) for kind in kinds}
        for accumulator in here.values():
            accumulator.update(ArrayBlock(rows))
        here = {kind: each for kind, each in here.items() if not kind.by_place}
        found.append(read_place(("embed.weight", "all"), here, TEXT, run="", options={}))
    assert found[0][0] == found[1][0]
    assert found[0][1].keys() == found[1][1].keys()


def test_what_is_held_decides_what_can_be_measured():
    here = accumulated(["isoscore"], cloud())
    assert {Moments, Groups, Reservoir} <= here.keys()
    assert "isoscore-debiased" in measurable(here)
    assert "mean-cosine" not in measurable(here)


def test_second_passes_start_from_the_mean_and_the_axes_of_the_first():
    rows = cloud()
    fresh = second_passes(accumulated(EVERY, rows), SECOND)
    np.testing.assert_allclose(fresh[CentredDirections].centre, rows.mean(axis=0))
    axes = fresh[Partitions].axes
    turned = axes.T @ (rows.T @ rows) @ axes
    np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=1e-9 * turned.max())


def test_readings_come_in_the_order_requested():
    here = accumulated(EVERY, cloud())
    names = ["isoscore", "mean-cosine", "twonn"]
    readings, left_out = read_place(PLACE, here, names, run="a", options={})
    assert [reading.measure for reading in readings] == names
    assert {reading.run for reading in readings} == {"a"}
    assert left_out == {}


def test_what_cannot_be_read_is_excluded_with_its_reason():
    here = accumulated(EVERY, cloud(n=3))
    readings, left_out = read_place(
        PLACE, here, ["isoscore-debiased", "mean-cosine"], run="", options={}
    )
    assert [reading.measure for reading in readings] == ["mean-cosine"]
    assert left_out["isoscore-debiased"] == "isoscore-debiased needs at least 4 rows, got 3"


@pytest.mark.parametrize("name", ["isoscore-star"])
def test_options_reach_the_measure(name):
    here = accumulated([name], cloud())
    values = [
        read_place(PLACE, here, [name], run="", options={"zeta": zeta})[0][0].value
        for zeta in (0.0, 0.5, 1.0)
    ]
    assert values == sorted(values)
    assert values[2] == pytest.approx(1.0)


def test_the_number_of_threads_changes_no_bit():
    rng = np.random.default_rng(12)
    names = np.repeat(np.arange(40), 10).astype(str)
    chunks = [Chunk(rng.normal(size=(400, 12)).astype(np.float32), "rows", 0, documents=names)]
    chosen = [each.name for each in MEASURES.values() if each.default]
    survey, _ = run(chunks, ("rows", "all"), kinds_for(chosen))
    assert read_survey(survey, chosen, threads=1) == read_survey(survey, chosen, threads=2)


@pytest.mark.parametrize("row", [[1.0, 1.0], [1e-3, 2.0, -7.0, 0.1], [0.3] * 7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_of_identical_rows_lie_inside_their_intervals(row, dtype):
    found = isoscope.measure(np.tile(np.array(row, dtype=dtype), (50, 1)))
    known = [each for each in found if each.low is not None]
    assert {"mean-cosine", "mean-cosine-cross"} <= {each.measure for each in known}
    assert [each for each in known if not each.low <= each.value <= each.high] == []
