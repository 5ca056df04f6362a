"""The populations behind the tables of intervals: what is drawn, and what is true of it."""

import json

import numpy as np
import pytest


@pytest.fixture
def pool(script):
    rng = np.random.default_rng(0)
    parts = [
        rng.normal(size=(n, 6)) + np.array([2, 1, 0, 0, 0, 0]) for n in rng.integers(3, 30, 40)
    ]
    parts = tuple(each.astype(np.float32) for each in parts)
    return script("populations").States("pool", parts)


def test_what_is_true_of_a_pool_is_what_its_rows_say(script, pool):
    found = script("intervals").truths(pool)
    rows = pool.rows().astype(float)
    units = rows / np.linalg.norm(rows, axis=1)[:, None]
    assert found["mean-cosine-cross"] == pytest.approx(np.mean(units @ units.T))
    values = np.linalg.eigvalsh(np.cov(rows.T))
    ratio = values.sum() ** 2 / (values**2).sum()
    assert found["isoscore-debiased"] == pytest.approx((ratio - 1) / 5, rel=1e-5)
    squares = np.sort(units.mean(axis=0) ** 2)
    assert found["outlier-share"] == pytest.approx(squares[-3:].sum() / squares.sum())


def test_documents_are_drawn_whole_and_no_row_is_a_copy(pool):
    rows, documents = pool.draw(300, np.random.default_rng(1))
    assert len(np.unique(rows, axis=0)) == len(rows)
    for number in (0, 150, 299):
        drawn = rows[documents == number]
        assert any(
            len(each) == len(drawn) and np.allclose(each, drawn, rtol=1e-3, atol=1e-6)
            for each in pool.pool
        )


def test_rows_that_stand_for_a_population_have_the_moments_of_drawn_ones(script):
    for each in script("populations").PLANTED:
        if each.sinks:
            continue  # below
        drawn = each._drawn(np.full(3000, 4), np.random.default_rng(2))
        found, known = (np.mean(rows.astype(float) ** 2) for rows in (drawn, each.rows(12_000)))
        assert found == pytest.approx(known, rel=0.05), each.name


def test_sinks_are_as_frequent_in_the_population_as_in_draws(script):
    (sinks,) = (each for each in script("populations").PLANTED if each.sinks)
    shares = []
    for rows in (sinks.rows(20_000), sinks.draw(1000, np.random.default_rng(3))[0]):
        norms = np.linalg.norm(rows, axis=1)
        shares.append(np.mean(norms > 10 * np.median(norms)))
    assert shares[0] == pytest.approx(shares[1], rel=0.1)
    assert shares[0] > 0.02


def test_a_draw_is_counted_once_warned_or_not_also_after_a_stop(script, pool, monkeypatch):
    intervals = script("intervals")
    monkeypatch.setattr(intervals, "REPETITIONS", 3)
    found, stopped = {"ran": 0}, {"ran": 0}
    assert len(list(intervals.covered(pool, 12, found))) == 3
    next(intervals.covered(pool, 12, stopped))
    stopped = json.loads(json.dumps(stopped))  # what is saved
    assert len(list(intervals.covered(pool, 12, stopped))) == 2
    assert stopped == found
    for counts in found["of"].values():
        assert counts["draws"] + counts["warned"] + counts["none"] == 3
        assert counts["held"] <= counts["draws"]
        assert counts["warned held"] <= counts["warned"]
    assert found["warnings"]["only N documents"][0] == 3 * len(found["of"])


def test_a_warning_is_known_by_its_words(script):
    kind_of = script("intervals").kind_of
    assert kind_of("only 12 documents: the interval is rough") == "only N documents"
    assert kind_of("n < 10 d (640 rows, 64 dimensions): biased") == "n < N d"


def test_changes_are_those_of_compare(script, pool, monkeypatch, tmp_path):
    intervals = script("intervals")
    rng = np.random.default_rng(3)
    with intervals.kept_spreads() as spreads:
        for name in ("a", "b"):
            rows, documents = pool.draw(40, rng)
            intervals.iso.measure(
                rows, document=documents, measures=intervals.NAMES, output=tmp_path / name
            )
    runs = intervals.load(tmp_path / "a"), intervals.load(tmp_path / "b")
    for each in intervals.single_questions(*runs, *spreads):
        assert each == intervals.iso.compare(*runs, measures=[each.measure])[0]
