"""Measures of attention heads against their definitions, and planted heads."""

import numpy as np
import pytest

from isoscope.accumulate import (
    ArrayBlock,
    EarlyKeys,
    EarlyQueries,
    Keys,
    Queries,
    QueryScores,
    Tally,
)
from isoscope.accumulate.heads import STATISTICS
from isoscope.accumulate.survey import Survey
from isoscope.errors import ConfigError
from isoscope.hashing import named_documents
from isoscope.lab.attention.results import ALIGNED, NEITHER, OPPOSED, verdict
from isoscope.measures import MEASURES
from isoscope.measures.attention_entropy import attention_entropy
from isoscope.measures.first_token_mass import first_token_mass
from isoscope.measures.key_cosine import key_cosine
from isoscope.measures.key_first_cosine import key_first_cosine
from isoscope.measures.key_isoscore import key_isoscore
from isoscope.measures.key_norm import key_norm
from isoscope.measures.largest_probability import largest_probability
from isoscope.measures.query_cosine import query_cosine
from isoscope.measures.query_first_share import query_first_share
from isoscope.measures.query_isoscore import query_isoscore
from isoscope.measures.query_key_cosine import query_key_cosine
from isoscope.measures.query_key_dot import query_key_dot
from isoscope.measures.query_norm import query_norm
from isoscope.measures.score_spread import score_spread
from isoscope.measures.sink_mass import sink_mass
from isoscope.measures.view.heads import BothMeans, QueryMeans, ScoreSums
from isoscope.study.measure_choice import head_measures, measure_names
from isoscope.study.reading import finalize_all, read_survey

FUNCTIONS = (
    query_norm,
    key_norm,
    query_key_cosine,
    query_key_dot,
    query_cosine,
    key_cosine,
    query_isoscore,
    key_isoscore,
    query_first_share,
    key_first_cosine,
    score_spread,
    attention_entropy,
    largest_probability,
    first_token_mass,
    sink_mass,
)
DOCUMENTS, EACH, WIDTH, SCALE = 60, 12, 6, 0.25


def cloud(mean, seed):
    rng = np.random.default_rng(seed)
    own = 0.2 * rng.normal(size=(DOCUMENTS, WIDTH)).repeat(EACH, axis=0)
    return mean + own + rng.normal(size=(DOCUMENTS * EACH, WIDTH)) * [2, 1, 1, 1, 0.5, 0.5]


def survey_of(queries, keys, scores=None, early=None):
    names = named_documents(np.repeat(np.arange(DOCUMENTS), EACH))
    places = np.arange(len(names), dtype=np.uint64)
    if scores is None:
        scores = np.ones((len(queries), len(STATISTICS)))
        scores[:, STATISTICS.index("scale")] = SCALE
    held = {}
    for kind, rows in (
        (Tally, queries), (Queries, queries), (Keys, keys), (QueryScores, scores),
        *(zip((EarlyQueries, EarlyKeys), early, strict=True) if early else ()),
    ):  # fmt: skip
        held[kind] = kind(rows.shape[1])
        held[kind].update(ArrayBlock(rows, names, places))
    return Survey({("head.0.0", "all"): held})


def read(*args, **how):
    found, left_out = read_survey(survey_of(*args, **how), head_measures())
    assert left_out == {}
    return {(each.measure, each.group): each for each in found}


def test_there_are_fifteen_of_them():
    assert len(head_measures()) == 15
    names = {each.__name__.replace("_", "-") for each in FUNCTIONS}
    assert names == set(head_measures())


def test_every_measure_of_vectors_is_as_defined():
    queries, keys = cloud(np.eye(WIDTH)[0], 1), cloud(-0.5 * np.eye(WIDTH)[1] - 1, 2)
    found = {name: each.value for (name, _), each in read(queries, keys).items()}
    mean_q, mean_k = queries.mean(axis=0), keys.mean(axis=0)
    lengths = np.linalg.norm(mean_q), np.linalg.norm(mean_k)
    assert found["query-norm"] == pytest.approx(lengths[0])
    assert found["key-norm"] == pytest.approx(lengths[1])
    assert found["query-key-cosine"] == pytest.approx(mean_q @ mean_k / np.prod(lengths))
    assert found["query-key-dot"] == pytest.approx(SCALE * mean_q @ mean_k)
    for name, rows in (("query", queries), ("key", keys)):
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = (units @ units.T)[~np.eye(len(rows), dtype=bool)]
        assert found[f"{name}-cosine"] == pytest.approx(cosines.mean())
        values = np.linalg.eigvalsh(np.cov(rows.T))
        expected = (values.sum() ** 2 / (values**2).sum() - 1) / (WIDTH - 1)
        # 1e-6: scatters are stored in float32
        assert found[f"{name}-isoscore"] == pytest.approx(expected, rel=1e-6)
    first = np.linalg.svd(queries)[2][0]
    assert found["query-first-share"] == pytest.approx((first @ mean_q) ** 2 / lengths[0] ** 2)
    signed = first * np.sign(first @ mean_q)
    assert found["key-first-cosine"] == pytest.approx(signed @ mean_k / lengths[1], rel=1e-5)


@pytest.mark.parametrize(
    ("direction", "expected"),
    [(np.eye(WIDTH)[0], ALIGNED), (-np.eye(WIDTH)[0], OPPOSED), (np.eye(WIDTH)[3], NEITHER)],
)
def test_planted_heads_are_read_as_such(direction, expected):
    noise = (cloud(0, 3), cloud(0, 4))
    off_queries, off_keys = (each - each.mean(axis=0) for each in noise)
    found = read(2 * np.eye(WIDTH)[0] + off_queries, 2 * direction + off_keys)
    cosine = found["query-key-cosine", ""]
    truth = direction[0]
    assert verdict(cosine) == expected
    assert cosine.value == pytest.approx(truth, abs=1e-9)
    assert np.sign(found["key-first-cosine", ""].value) == np.sign(truth) or not truth
    assert found["query-first-share", ""].value > 0.9
    assert found["query-norm", ""].value == pytest.approx(2, abs=1e-9)


def test_scores_are_weighted_by_the_queries_they_stand_for():
    rng = np.random.default_rng(5)
    weight, values = (
        rng.integers(1, 4, size=DOCUMENTS * EACH),
        rng.random((6, DOCUMENTS * EACH)),
    )
    several = (rng.random(DOCUMENTS * EACH) < 0.8).astype(float)
    spread, entropy, largest, first, sink, scale = values
    columns = (1, spread, several, entropy * several, largest, first, sink, scale)
    scores = np.stack([weight * column for column in columns], axis=1)
    found = read(cloud(1, 6), cloud(1, 7), scores)
    for name, column in (
        ("score-spread", spread), ("largest-probability", largest),
        ("first-token-mass", first), ("sink-mass", sink),
    ):  # fmt: skip
        expected = np.average(column, weights=weight)
        assert found[name, ""].value == pytest.approx(expected)
        assert found[name, ""].low < expected < found[name, ""].high
    relative = np.average(entropy[several > 0], weights=weight[several > 0])
    assert found["attention-entropy", ""].value == pytest.approx(relative)


def test_means_before_rotation_are_a_group_of_their_own():
    early = cloud(np.eye(WIDTH)[0] * 3, 8), cloud(-np.eye(WIDTH)[0] * 2, 9)
    found = read(cloud(0, 10), cloud(0, 11), early=early)
    groups = {name for name, group in found if group == "before-rotation"}
    assert groups == {"query-norm", "key-norm", "query-key-cosine", "query-key-dot"}
    before = found["query-key-cosine", "before-rotation"]
    assert before.value == pytest.approx(-1, abs=0.05) and before.high < 0
    assert found["query-norm", "before-rotation"].value == pytest.approx(3, abs=0.2)


def test_means_that_cancel_out_have_no_direction():
    rows = np.ones((DOCUMENTS * EACH, WIDTH))
    rows[::2] = -1
    _, left_out = read_survey(survey_of(rows, rows), head_measures())
    assert {"query-key-cosine", "query-first-share", "key-first-cosine"} <= left_out.keys()


def test_queries_that_all_see_one_key_have_no_entropy():
    scores = np.ones((DOCUMENTS * EACH, len(STATISTICS)))
    scores[:, STATISTICS.index("several")] = 0
    _, left_out = read_survey(survey_of(cloud(0, 1), cloud(0, 2), scores), head_measures())
    assert left_out == {
        "attention-entropy": "attention needs a query that sees at least two keys, got none"
    }


def test_rows_have_no_measures_of_heads():
    with pytest.raises(ConfigError, match="cannot compute query-norm of rows") as error:
        measure_names(["mean-cosine", "query-norm"])
    assert error.value.slug == "measure-of-heads"
    assert not set(head_measures()) & set(measure_names(None, all=True, text=True))


def test_views_can_leave_a_group_out():
    view = ScoreSums(
        keys=np.arange(3), sizes=np.ones(3), documents=3, sums=np.arange(24.0).reshape(3, 8)
    )
    assert view.without(1).total("weight") == 16
    assert QueryMeans.needs == (Queries,) and BothMeans.needs[1] is Keys


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_a_group_the_others_pooled_are_as_they_are_apart(function):
    record = MEASURES[function.__name__.replace("_", "-")]
    rng = np.random.default_rng(3)
    scores = np.abs(rng.normal(size=(DOCUMENTS * EACH, len(STATISTICS))))
    held = survey_of(cloud([2, 0, 1, 0, 0, 0], 0), cloud(1, 1), scores).held["head.0.0", "all"]
    pooled, view = (finalize_all(held).view(record.reads) for _ in range(2))  # no shared parts
    apart = [record.compute(view.without(group)) for group in range(view.groups)]
    # 1e-9: the whole less a group, and the sum of the others, add up in another order
    assert pooled.values_without(record.compute) == pytest.approx(apart, rel=1e-9)
    assert len(apart) >= 8 and len(set(apart)) > 1
