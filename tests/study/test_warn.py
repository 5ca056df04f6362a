"""Every warning, on both sides of the line at which it appears."""

import numpy as np
import pytest

import isoscope as iso
from isoscope.measures import MEASURES
from isoscope.measures.view import Halves, RawSpectrum, Spectrum
from isoscope.study.reading import read_survey
from isoscope.study.warn import about_bias
from isoscope.types import Reading

DEFAULT = [m.name for m in MEASURES.values() if m.default]
SPECTRAL = [m.name for m in MEASURES.values() if m.reads in (Spectrum, RawSpectrum)]
HALVED = [m.name for m in MEASURES.values() if m.reads is Halves]
DIRECTED = ["mean-cosine", "mean-cosine-cross", "outlier-share", "uniformity"]
SAMPLED = ["uniformity", "twonn", "mle-dimension"]


@pytest.fixture
def warned(survey):
    """The measures whose readings carry a warning that has this text in it."""

    def names(text, rows, documents=None, **how):
        found = read_survey(survey(rows, DEFAULT, documents, **how), DEFAULT)[0]
        assert found
        for reading in found:
            assert len(set(reading.warnings)) == len(reading.warnings), reading.measure
        return [r.measure for r in found if any(text in each for each in r.warnings)]

    return names


def every(survey, rows, documents=None):
    return [
        reading.measure for reading in read_survey(survey(rows, DEFAULT, documents), DEFAULT)[0]
    ]


def in_documents(count, length=4):
    return np.repeat([f"d{i}" for i in range(count)], length)


def test_a_calm_collection_has_no_warnings_at_all(survey, cloud):
    for reading in read_survey(survey(cloud(n=2000), DEFAULT, in_documents(500)), DEFAULT)[0]:
        assert reading.warnings == (), reading.measure


def test_without_an_interval_fewer_rows_than_ten_a_dimension_bias_the_spectrum(warned, cloud):
    text = "n < 10 d (42 rows, 6 dimensions): the spectrum is biased"
    assert warned(text, cloud(n=42), in_documents(6, 7)) == SPECTRAL_OF_SIX
    assert warned("n < 10 d", cloud(n=60), in_documents(6, 10)) == []
    assert warned("n < 10 d", cloud(n=59)) == []  # the interval holds the bias


SPECTRAL_OF_SIX = [name for name in SPECTRAL if name != "alpha"]  # which needs 14 dimensions


def test_so_do_fewer_documents_than_ten_a_dimension(warned, cloud):
    text = "documents < 10 d (6 documents, 6 dimensions): the spectrum may be biased"
    assert warned(text, cloud(n=600), in_documents(6, 100)) == SPECTRAL_OF_SIX
    assert warned("documents < 10 d", cloud(n=590), in_documents(59, 10)) == []


def test_only_the_stronger_of_the_two_is_reported(warned, cloud):
    rows, documents = cloud(n=30), in_documents(6, 5)
    assert warned("n < 10 d", rows, documents) == SPECTRAL_OF_SIX
    assert warned("documents < 10 d", rows, documents) == []


def test_rows_on_their_own_are_not_called_documents(warned, cloud):
    assert warned("documents", cloud(n=100)) == []


@pytest.mark.parametrize("documents", [8, 31])
def test_few_documents_make_a_rough_interval(warned, survey, cloud, documents):
    rows, names = cloud(n=documents * 20), in_documents(documents, 20)
    text = f"only {documents} documents: the interval is rough"
    assert warned(text, rows, names) == every(survey, rows, names)


def test_32_documents_are_enough(warned, cloud):
    assert warned("the interval is rough", cloud(n=640), in_documents(32, 20)) == []


def test_few_independent_rows_are_not_called_rough(warned, cloud):
    assert warned("the interval is rough", cloud(n=20)) == []


@pytest.mark.parametrize("documents", [1, 7])
def test_below_eight_documents_there_is_no_interval(warned, survey, cloud, documents):
    rows, names = cloud(n=documents * 40), in_documents(documents, 40)
    text = f"no interval: {documents} documents, at least 8 needed"
    assert warned(text, rows, names) == every(survey, rows, names)
    for reading in read_survey(survey(rows, DEFAULT, names), DEFAULT)[0]:
        assert reading.low is None and reading.high is None


def test_below_eight_rows_there_is_no_interval(warned, survey, cloud):
    rows = cloud(n=7)
    assert warned("no interval: 7 rows, at least 8 needed", rows) == every(survey, rows)


def test_from_eight_documents_on_there_is_one(warned, survey, cloud):
    rows, names = cloud(n=160), in_documents(8, 20)
    assert warned("no interval: 8", rows, names) == []
    (reading,) = read_survey(survey(rows, ["mean-cosine"], names), ["mean-cosine"])[0]
    assert reading.low < reading.value < reading.high


def test_an_interval_that_is_missing_is_always_explained(survey, cloud):
    for rows, names in (
        (cloud(n=8), None),
        (cloud(n=30), None),
        (cloud(n=80), in_documents(8, 10)),
        (cloud(n=40), in_documents(20, 2)),
        (np.repeat(np.eye(6), 10, axis=0), None),
        (cloud(n=24), np.r_[["long"] * 16, [f"d{i}" for i in range(8)]]),
    ):
        for reading in read_survey(survey(rows, DEFAULT, names), DEFAULT)[0]:
            missing = reading.low is None
            said = [w for w in reading.warnings if w.startswith("no interval: ")]
            assert missing == (len(said) == 1), (reading.measure, reading.warnings)


def test_an_interval_that_is_not_defined_without_a_group_is_excluded(warned, cloud):
    # Without the long document eight rows are left, too few for twenty neighbours.
    names = np.r_[["long"] * 16, [f"d{i}" for i in range(8)]]
    text = "no interval: it is not defined without some of the groups"
    assert "mle-dimension" in warned(text, cloud(n=24), names)
    assert "mean-cosine" not in warned(text, cloud(n=24), names)


@pytest.mark.parametrize("rows", [8, 31])
def test_debiased_readings_are_unreliable_below_32(warned, cloud, rows):
    text = f"unreliable below 32 documents, got {rows}"
    assert set(warned(text, cloud(n=rows))) == set(HALVED)


def test_from_32_on_they_are_not(warned, cloud):
    assert warned("unreliable", cloud(n=32)) == []
    assert warned("unreliable", cloud(n=320), in_documents(32, 10)) == []


def test_it_is_documents_that_count_not_rows(warned, cloud):
    text = "unreliable below 32 documents, got 31"
    assert set(warned(text, cloud(n=310), in_documents(31, 10))) == set(HALVED)


def test_zero_rows_are_reported_where_a_direction_is_needed(warned, cloud):
    rows = cloud()
    rows[[4, 70, 300]] = 0
    assert warned("3 zero rows dropped: they have no direction", rows) == DIRECTED
    assert warned("zero rows", cloud()) == []


def test_copies_are_reported_everywhere_and_only_if_they_are_many(warned, survey, cloud):
    rows = cloud(n=1000)
    rows[500:750] = rows[:250]
    assert warned("25.0% of the rows are copies of another row", rows) == every(survey, rows)
    few = cloud(n=1000)
    few[500] = few[0]  # one in a thousand is nothing to speak of
    assert warned("copies", few) == []
    few[501] = few[1]
    assert warned("0.2% of the rows are copies", few) == every(survey, few)


def test_a_sample_is_reported_where_one_was_used(warned, cloud):
    text = "from a sample of 2048 of 2049 rows"
    assert warned(text, cloud(n=2049)) == SAMPLED
    assert warned("sample", cloud(n=2048)) == []


def test_skipped_rows_are_reported_everywhere(survey, cloud):
    from isoscope.accumulate import Tally

    one = survey(cloud(), DEFAULT)
    one.held["rows", "all"][Tally].skip(12)
    for reading in read_survey(one, DEFAULT)[0]:
        assert "12 rows skipped: they were not finite numbers" in reading.warnings


# --- bias -------------------------------------------------------------------------------


def reading(measure, value, low=None, high=None):
    return Reading("", "rows", "all", "", None, measure, value, low, high, 100, 10)


TWINS = [
    ("mean-cosine", "mean-cosine-cross"),
    ("isoscore", "isoscore-debiased"),
    ("effective-rank", "effective-rank-debiased"),
]


@pytest.mark.parametrize(("plain", "debiased"), TWINS)
def test_a_plain_value_is_biased_when_its_twin_lies_outside_its_interval(plain, debiased):
    outside = [reading(plain, 0.5, 0.4, 0.6), reading(debiased, 0.61234)]
    told = f"biased by more than its interval: {debiased} reads 0.6123"
    assert about_bias(outside) == {plain: told}
    for value in (0.4, 0.5, 0.6):
        assert about_bias([reading(plain, 0.5, 0.4, 0.6), reading(debiased, value)]) == {}


@pytest.mark.parametrize(("plain", "debiased"), TWINS)
def test_without_a_twin_or_an_interval_nothing_is_reported(plain, debiased):
    assert about_bias([reading(plain, 0.5, 0.4, 0.6)]) == {}
    assert about_bias([reading(debiased, 9.0)]) == {}
    assert about_bias([reading(plain, 0.5), reading(debiased, 9.0)]) == {}


def test_a_share_of_nothing_is_reported_as_one():
    share = reading("outlier-share", 3.0, 2.0, 4.0)
    told = {"outlier-share": "the mean cosine it explains may be zero"}
    assert about_bias([reading("mean-cosine", 0.01, -0.1, 0.12), share]) == told
    assert about_bias([reading("mean-cosine", 0.3, 0.2, 0.4), share]) == {}
    assert about_bias([share]) == {}


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_the_interval_of_a_plain_reading_holds_its_bias(survey, seed):
    # white: IsoScore 1; the plain value of 60 rows is 0.56, and its interval says so
    rows = np.random.default_rng(seed).normal(size=(60, 40))
    found = {r.measure: r for r in read_survey(survey(rows, DEFAULT), DEFAULT)[0]}
    plain, debiased = found["isoscore"], found["isoscore-debiased"]
    assert plain.low <= plain.value < 0.7 and plain.high >= min(debiased.value, 1.0)
    assert not any("biased by more" in w for r in found.values() for w in r.warnings)
    assert any(w.startswith("may be biased low") for w in found["effective-rank"].warnings)


def test_one_document_with_half_the_rows_is_reported(warned, cloud):
    rows = cloud(n=2000)
    even = np.repeat(np.arange(100), 20)
    uneven = np.r_[np.zeros(1000, dtype=int), 1 + np.repeat(np.arange(100), 10)]
    assert warned("documents of very unequal length", rows, even) == []
    assert "isoscore-debiased" in warned("very unequal length count as 4", rows, uneven)


def test_fewer_rows_than_dimensions_may_be_a_swap(warned, cloud):
    assert "isoscore" in warned("transpose", cloud(n=30, d=40))
    assert warned("transpose", cloud(n=50, d=40)) == []


NORMS = ["mean-share", "mean-share-debiased", "norm-spread"]


@pytest.mark.parametrize(
    ("freedom", "heavy"), [(2.5, True), (4, True), (8, False), (40, False)]
)
def test_a_heavy_tail_of_norms_is_named(warned, freedom, heavy):
    # indices that the threshold was not chosen on: Student's t with these degrees of freedom
    rng = np.random.default_rng(17)
    rows = rng.normal(size=(6000, 8)) * np.sqrt(freedom / rng.chisquare(freedom, (6000, 1)))
    names = warned("norms have a heavy tail", rows, in_documents(200, 30))
    assert names == (NORMS if heavy else [])


def test_sinks_of_one_length_are_no_tail(warned, cloud):
    rows = cloud(n=12_000)
    rows[::250] *= 60
    assert warned("norms have a heavy tail", rows, in_documents(120, 100)) == []


UNSEEN = "too few to show a heavy tail"


@pytest.mark.parametrize("seed", range(4))
def test_few_documents_that_differ_in_length_cannot_show_a_tail(warned, cloud, seed):
    # also where no long one was drawn, which is where the interval misses
    rng = np.random.default_rng(seed)
    scales = np.sort(rng.lognormal(0, 0.5, 60))[:50]
    rows = cloud(n=1000) * np.repeat(scales, 20)[:, None]
    assert warned(UNSEEN, rows, in_documents(50, 20)) == NORMS


def test_documents_of_one_length_or_very_many_have_no_unseen_tail(warned, cloud):
    rows = cloud(n=4000)
    assert warned(UNSEEN, rows, in_documents(200, 20)) == []
    rows[::20] *= 30  # a sink in every document: norms differ within documents
    assert warned(UNSEEN, rows, in_documents(200, 20)) == []
    scales = np.random.default_rng(3).lognormal(0, 0.5, 1000)
    rows = cloud(n=4000) * np.repeat(scales, 4)[:, None]
    assert warned(UNSEEN, rows, in_documents(1000, 4)) == []


def test_few_rows_of_their_own_cannot_show_a_tail_either(warned, cloud):
    scales = np.random.default_rng(3).lognormal(0, 0.5, (1000, 1))
    assert warned(UNSEEN, (cloud(n=1000) * scales)[:300]) == NORMS
    assert warned(UNSEEN, cloud(n=1000) * scales) == []


# --- neighbours --------------------------------------------------------------------------
NAMES = ["mean-cosine", "isoscore", "twonn"]


def tokens_of(documents, length, likeness, d=24, seed=0):
    """Rows of documents that share a part of their variance, one document after another."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(documents, 1, d)) * likeness**0.5
    own = rng.normal(size=(documents, length, d)) * (1 - likeness) ** 0.5
    return (shared + own).reshape(-1, d) + 0.7


def warns(rows, **how):
    found = iso.measure(rows, measures=NAMES, **how)
    marked = [any("neighbouring rows" in w for w in each.warnings) for each in found]
    assert len(set(marked)) == 1  # every reading, or none
    return marked[0]


@pytest.mark.parametrize("likeness", [0.1, 0.3, 0.8])
@pytest.mark.parametrize("length", [7, 40])
def test_tokens_of_documents_that_are_not_named_are_noticed(likeness, length):
    rows = tokens_of(3000 // length, length, likeness)
    names = np.repeat(np.arange(3000 // length), length)
    assert warns(rows)
    assert not warns(rows, document=names)
    assert not warns(np.random.default_rng(1).permutation(rows))


@pytest.mark.parametrize("scale", ["even", "steep", "cone"])
def test_independent_rows_are_not_taken_for_documents(scale):
    rng = np.random.default_rng(2)
    for n in (16, 100, 1000):
        for _ in range(5):
            rows = rng.standard_t(4, size=(n, 12))
            rows *= np.geomspace(1, 0.01, 12) if scale == "steep" else 1
            rows += 3 if scale == "cone" else 0
            assert not warns(rows)


def test_neighbours_are_noticed_over_units_shards_and_files(tmp_path, monkeypatch):
    rows = tokens_of(200, 20, 0.3).astype(np.float32)
    (whole,) = iso.measure(rows, measures=["mean-cosine"])
    (tmp_path / "x").mkdir()
    for i, part in enumerate(np.split(rows, 4)):
        np.save(tmp_path / "x" / f"{i}.npy", part)
        iso.measure(part, measures=["mean-cosine"], output=tmp_path / f"r{i}")
    np.save(tmp_path / "all.npy", rows)
    (merged,) = iso.merge([tmp_path / f"r{i}" for i in range(4)], tmp_path / "merged")
    (folder,) = iso.measure(tmp_path / "x", measures=["mean-cosine"])
    monkeypatch.setattr("isoscope.study.rows.BLOCKS", 0.01)
    (units,) = iso.measure(tmp_path / "all.npy", measures=["mean-cosine"])
    (text,) = whole.warnings
    assert text.startswith("neighbouring rows are alike (mean cosine 0.")
    assert merged.warnings == folder.warnings == units.warnings == (text,)


def test_neighbours_that_are_less_alike_than_random_rows_are_a_sequence_too():
    # two kinds of rows take turns: neighbours differ, every other row is alike
    rng = np.random.default_rng(23)
    turns = np.tile([[1.0], [-1.0]], (1000, 1)) * np.r_[0.8, np.zeros(7)]
    rows = rng.normal(size=(2000, 8)) + turns
    (reading,) = iso.measure(rows, measures=["mean-cosine"])
    (text,) = reading.warnings
    assert text.startswith("neighbouring rows are unlike (mean cosine -0.")
    (shuffled,) = iso.measure(rng.permutation(rows), measures=["mean-cosine"])
    assert shuffled.warnings == ()
