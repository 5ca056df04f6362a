"""Curves of a site, from planted summaries."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.accumulate import ArrayBlock, Moments, Reservoir, Vocabulary
from isoscope.accumulate.survey import Survey
from isoscope.exhibit.curves import (
    BANDS,
    UNKNOWN,
    TokenCounts,
    curves_of,
    dimension_scores,
    matrix_cells,
    matrix_rows,
    spectrum_curve,
)
from isoscope.hashing import named_documents, ordinal_documents
from isoscope.measures.view.spectrum import effective_rows, isotropic_spectrum
from isoscope.types import CauseShares, DimensionScores, SinkShare, SpectrumCurve


def moments_of(rows, documents=None):
    found = Moments(rows.shape[1])
    if documents is None:
        found.update(ArrayBlock(rows))
    else:
        found.update(ArrayBlock(rows, named_documents(documents)))
    return found.finalize()


@pytest.fixture(scope="module")
def white():
    """An isotropic cloud whose rows come in 100 documents and are alike within each."""
    rng = np.random.default_rng(5)
    documents = np.repeat(np.arange(100), 50)
    own = rng.normal(size=(5000, 64))
    shared = rng.normal(size=(100, 64))[documents]
    return np.sqrt(0.7) * own + np.sqrt(0.3) * shared, documents


def test_independent_rows_are_all_effective():
    rows = np.random.default_rng(0).normal(size=(500, 16))
    assert effective_rows(moments_of(rows)) == 500


def test_rows_of_documents_are_worth_as_many_as_their_correlation_says(white):
    """With correlation r, n / (1 + (m - 1) r^2) for documents of m rows: 924 of 5,000."""
    expected = 5000 / (1 + 49 * 0.3**2)
    assert effective_rows(moments_of(*white)) == pytest.approx(expected, rel=0.1)


def test_a_white_cloud_of_documents_follows_its_isotropic_line(white):
    moments = moments_of(*white)
    curve = spectrum_curve(moments, effective_rows(moments))
    inner = slice(2, -8)  # the law has no tails; few eigenvalues lie beyond its edges
    assert curve.value[inner] == pytest.approx(curve.isotropic[inner], rel=0.08)
    naive = isotropic_spectrum(5000, 64)[curve.rank - 1]
    assert np.abs(curve.value - naive).mean() > 3 * np.abs(curve.value - curve.isotropic).mean()


def test_eigenvalues_are_over_their_average_and_rounding_is_dropped():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 8)) * np.arange(1, 9)
    rows[:, 0] = rows[:, 1]  # one direction without variance
    curve = spectrum_curve(moments_of(rows), 400)
    expected = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    assert curve.value[:7] == pytest.approx(expected[:7] / expected.mean(), rel=1e-9)
    assert curve.value[7] == 0


def test_a_score_is_the_mean_square_over_the_average():
    rows = np.random.default_rng(2).normal(size=(300, 300))
    rows[:, 17] += 20
    found = dimension_scores(moments_of(rows))
    square = (rows**2).mean(axis=0)
    assert found.largest[np.argmax(found.score)] == 17
    assert found.score.max() == pytest.approx(square[17] / square.mean())
    assert found.end[-1] == 300 and len(found.score) == 128


@pytest.fixture(scope="module")
def surveyed(tiny, texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("curves")
    (folder / "corpus.txt").write_text("\n".join(texts))
    iso.survey(tiny, folder / "corpus.txt", output=folder / "run")
    return iso.load(folder / "run")


def test_a_surveyed_site_has_a_spectrum_scores_and_causes(surveyed):
    causes = []
    for survey in surveyed.by_site():
        (site,) = {site for site, _ in survey.held}
        curves, effective = curves_of(survey, site, "run")
        assert {SpectrumCurve, DimensionScores} <= set(map(type, curves))
        assert all(n > 1 for n in effective.values())
        shares = [c.causes for c in curves if isinstance(c, CauseShares)]
        by_dependence = ([c for c in found if c.scale == "dependence"] for found in shares)
        causes += [sum(each.share for each in found) for found in by_dependence if found]
    assert len(causes) >= 4  # where there is no mean cosine there is nothing to explain
    assert causes == pytest.approx([1.0] * len(causes))


def test_sinks_are_what_the_variance_loses_without_them():
    rng = np.random.default_rng(3)
    survey = Survey()
    for kind, rows in (
        ("ordinary", rng.normal(size=(900, 8))),
        ("sink", rng.normal(size=(100, 8)) * 100),
    ):
        part = Moments(8)
        part.update(ArrayBlock(rows))
        survey.held["resid.0", kind] = {Moments: part}
    (sinks,) = [c for c in curves_of(survey, "resid.0", "x")[0] if isinstance(c, SinkShare)]
    assert sinks.rows == 100
    assert sinks.share == pytest.approx(1 - 900 / (900 + 1e6), abs=0.01)


SITE = "embed.weight"


def survey_of(rows):
    found = {Moments: Moments(rows.shape[1]), Reservoir: Reservoir(rows.shape[1])}
    for part in found.values():
        keys = ordinal_documents(SITE, np.arange(len(rows), dtype=np.uint64), seed=7)
        part.update(ArrayBlock(rows, keys))
    return Survey({(SITE, "all"): found})


def test_tokens_are_found_again():
    keys = ordinal_documents(SITE, np.array([3, 99, 0], dtype=np.uint64), seed=7)
    found = matrix_rows(np.append(keys, np.uint64(5)), SITE, 100, 7)
    assert found.tolist() == [3, 99, 0, -1]


def test_cells_count_every_row_of_the_sample():
    rows = np.random.default_rng(0).normal(size=(600, 12)) + 1.0
    curve = matrix_cells(survey_of(rows), SITE, None, 7)
    assert curve.rows.sum() == 600
    assert curve.bands == (UNKNOWN,)
    axes = np.linalg.svd(rows)[2][:2].T
    spread = np.ptp(rows @ axes, axis=0)
    assert np.isclose(np.ptp(curve.x), spread[0], rtol=0.05)


def test_bands_are_how_often_tokens_were_seen():
    rows = np.random.default_rng(1).normal(size=(600, 12))
    words = Vocabulary(12)
    tokens = np.repeat(np.arange(300), [1, 20, 200] * 100)
    words.update(ArrayBlock(np.ones((len(tokens), 12)), tokens=tokens))
    counts = TokenCounts(words.finalize())
    assert counts.bands(np.array([0, 1, 2, 500, -1])).tolist() == [1, 2, 3, 0, 4]
    curve = matrix_cells(survey_of(rows), SITE, counts, 7)
    assert curve.bands == (*BANDS, UNKNOWN)
    by_band = np.bincount(curve.band, curve.rows)
    assert by_band.tolist() == [300, 100, 100, 100]


def test_without_a_sample_there_are_no_cells():
    assert matrix_cells(Survey(), SITE, None, 0) is None
