"""The loop: the same result whatever the timing and the chunks; bad rows are named."""

import time

import numpy as np
import pytest

from isoscope.accumulate import CentredDirections, Groups, Moments, Tally
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.errors import RowError
from isoscope.measures import MEASURES
from isoscope.study.lanes import block_rows, run
from isoscope.study.reading import kinds_for, read_survey, second_passes
from isoscope.types import Chunk

PLACE = ("rows", "all")
NAMES = [m.name for m in MEASURES.values() if m.default]
KINDS = kinds_for(NAMES)
DOCUMENTS = np.repeat(np.arange(120), 5)


def ran(chunks, kinds=KINDS, **how):
    return run(chunks, PLACE, kinds, **how)


# --- what does not change the result ----------------------------------------------------


@pytest.mark.parametrize("documents", [None, DOCUMENTS], ids=["rows", "documents"])
def test_two_runs_are_the_same_to_the_last_bit(chunks, cloud, assert_same, documents):
    rows = cloud().astype(np.float32)
    first, second = (ran(chunks(rows, 50, documents))[0] for _ in range(2))
    assert_same(first, second)


def test_slow_and_fast_readers_come_to_the_same_bits(chunks, cloud, assert_same):
    def dawdling(parts, every):
        for i, part in enumerate(parts):
            time.sleep(0.02 if i % every == 0 else 0)
            yield part

    parts = chunks(cloud(), 50)
    assert_same(ran(parts)[0], ran(dawdling(parts, 3))[0])


def test_a_slow_lane_does_not_change_the_bits(chunks, cloud, assert_same, monkeypatch):
    parts = chunks(cloud(), 50)
    before = ran(parts)[0]
    update = Survey.update
    seen = []

    def slowly(self, place, kinds, block):
        seen.append(id(self))
        time.sleep(0.01 if id(self) == seen[0] else 0)
        update(self, place, kinds, block)

    monkeypatch.setattr(Survey, "update", slowly)
    assert_same(before, ran(parts)[0])
    assert len(set(seen)) == 2  # both lanes were at work


@pytest.mark.parametrize("documents", [None, DOCUMENTS], ids=["rows", "documents"])
@pytest.mark.parametrize("size", [1, 37, 600])
def test_chunks_change_nothing_but_the_rounding(chunks, cloud, assert_same, documents, size):
    rows = cloud(mean=100.0)
    one, other = (ran(chunks(rows, each, documents))[0] for each in (200, size))
    # float64 sums to 1e-10 of the largest; sketches are kept in float32.
    for kind, part in one.held[PLACE].items():
        theirs = other.held[PLACE][kind].state()
        for name, array in part.state().items():
            rtol = 1e-5 if kind is Groups and name == "sketch" else 1e-10
            atol = rtol * float(np.abs(array).max(initial=1e-300))
            np.testing.assert_allclose(theirs[name], array, rtol=rtol, atol=atol)


def test_float32_readings_change_by_rounding_only(chunks, cloud):
    rows = cloud(mean=30.0).astype(np.float32)
    one, other = (read_survey(ran(chunks(rows, size))[0], NAMES)[0] for size in (40, 600))
    for ours, theirs in zip(one, other, strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-5, abs=1e-6), ours.measure


def test_memory_of_a_chunk_may_be_read_only(chunks, cloud):
    rows = cloud()
    rows.setflags(write=False)
    before = rows.copy()
    ran(chunks(rows, 100))
    np.testing.assert_array_equal(rows, before)


# --- rows that cannot be measured -------------------------------------------------------


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity")])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_that_is_no_number_is_named_with_its_file(chunks, cloud, value, name, kind):
    rows = cloud().astype(kind)
    rows[457, 2] = value
    with pytest.raises(
        RowError, match=f"expected finite numbers in a.npy, got {name} in row 457"
    ) as caught:
        ran(chunks(rows, 100))
    assert caught.value.slug == "row-not-finite"


@pytest.mark.parametrize("documents", [None, DOCUMENTS], ids=["rows", "documents"])
def test_the_first_bad_row_is_named_even_if_a_later_block_is_done_before(
    chunks, cloud, documents, monkeypatch
):
    rows = cloud()
    rows[[130, 160, 230, 599]] = np.nan
    update = Survey.update

    def slowly(self, place, kinds, block):
        time.sleep(0.02)
        update(self, place, kinds, block)

    monkeypatch.setattr(Survey, "update", slowly)
    for size in (10, 100, 600):
        with pytest.raises(RowError, match="NaN in row 130 "):
            ran(chunks(rows, size, documents))


def test_a_row_is_named_by_its_ordinal_where_others_were_dropped():
    rows = np.ones((3, 2))
    rows[1] = np.nan
    chunk = Chunk(rows, "a", 0, place="a.csv", ordinals=np.array([0, 7, 8]))
    with pytest.raises(RowError, match=r"in a.csv, got NaN in row 7 \(counted from 0\)"):
        ran([chunk])


def test_a_row_is_named_with_its_own_file_where_a_document_spans_two():
    good, bad = np.ones((3, 2)), np.full((3, 2), np.nan)
    names = np.array(["d"] * 3)
    chunks = [
        Chunk(good, "one", 0, names, place="one.npy"),
        Chunk(bad, "two", 0, names, place="two.npy"),
    ]
    with pytest.raises(RowError, match=r"in two.npy, got NaN in row 0"):
        ran(chunks)


def test_rows_without_a_file_are_called_the_rows():
    with pytest.raises(RowError, match="expected finite numbers in the rows"):
        ran([Chunk(np.full((2, 2), np.inf), "a", 0)])


@pytest.mark.parametrize("documents", [None, DOCUMENTS], ids=["rows", "documents"])
def test_skipped_rows_are_counted_and_leave_no_trace(chunks, cloud, assert_same, documents):
    rows = cloud()
    bad = np.array([3, 130, 131, 599])
    rows[bad, 0] = [np.nan, np.inf, -np.inf, np.nan]
    survey, skipped = ran(chunks(rows, 100, documents), skip_bad=True)
    assert skipped == 4
    clean = []
    for chunk in chunks(rows, 100, documents):
        kept = np.flatnonzero(np.isfinite(chunk.rows).all(axis=1))
        names = None if documents is None else chunk.documents[kept]
        ordinals = chunk.start + kept
        clean.append(Chunk(chunk.rows[kept], "a", chunk.start, names, ordinals=ordinals))
    if documents is None:
        assert_same(survey, ran(clean)[0])
    assert survey.held[PLACE][Tally].count == 596
    values = {r.measure: r.value for r in read_survey(survey, ["isoscore", "mean-cosine"])[0]}
    others = {
        r.measure: r.value for r in read_survey(ran(clean)[0], ["isoscore", "mean-cosine"])[0]
    }
    assert values == pytest.approx(others, rel=1e-12)


def test_a_chunk_of_nothing_but_bad_rows_can_be_skipped(chunks, cloud):
    rows = cloud()
    rows[100:200] = np.nan
    survey, skipped = ran(chunks(rows, 100), skip_bad=True)
    assert skipped == 100 and survey.held[PLACE][Tally].count == 500


def test_nothing_but_bad_rows_leaves_nothing(chunks):
    survey, skipped = ran(chunks(np.full((30, 2), np.nan), 10), skip_bad=True)
    assert skipped == 30
    assert survey.held[PLACE][Tally].count == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-75, 1e-100, 1e-160, 1e-200, 1e-310])
@pytest.mark.parametrize("skip_bad", [False, True])
def test_rows_too_short_for_their_squares_are_named_and_zeros_are_not(
    chunks, cloud, scale, skip_bad
):
    rows = cloud()
    rows[300] = 0
    rows[[321, 400]] *= scale
    rows[330, 0] = np.nan if skip_bad else 0
    with pytest.raises(
        RowError, match=r"no shorter than 1e-70 in a.npy, got a shorter one in row 321"
    ) as caught:
        ran(chunks(rows, 100), skip_bad=skip_bad)
    assert caught.value.slug == "row-too-small"


@pytest.mark.filterwarnings("error")
def test_short_rows_of_float32_are_measured(chunks, cloud):
    rows = (cloud() * 1e-38).astype(np.float32)
    survey, _ = ran(chunks(rows, 100))
    assert survey.held[PLACE][Tally].zeros == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e75, 1e100, 1e200])
@pytest.mark.parametrize("skip_bad", [False, True])
def test_rows_too_long_for_their_squares_are_named_and_never_skipped(
    chunks, cloud, scale, skip_bad
):
    rows = cloud()
    rows[[321, 400]] *= scale
    rows[330, 0] = np.nan if skip_bad else 0
    with pytest.raises(
        RowError, match=r"rows no longer than 1e\+70 in a.npy, got a longer one in row 321"
    ) as caught:
        ran(chunks(rows, 100), skip_bad=skip_bad)
    assert caught.value.slug == "row-too-large"
    assert "divide the vectors by a constant" in caught.value.hint


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e13, 1e-12, 1e-25])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rows_of_any_other_size_read_the_same(chunks, cloud, scale, kind):
    unmoved = [name for name in NAMES if "scale" in MEASURES[name].unmoved_by]
    rows = cloud(mean=0.3).astype(kind)
    one, other = (
        read_survey(ran(chunks(each, 100))[0], unmoved)[0]
        for each in (rows, (rows * kind(scale)))
    )
    for ours, theirs in zip(one, other, strict=True):
        assert theirs.value == pytest.approx(ours.value, rel=1e-4), ours.measure


def test_what_a_reader_raises_comes_through(chunks, cloud):
    def breaking():
        yield from chunks(cloud(), 100)[:3]
        raise RowError("the file ends here", hint="copy it again", slug="truncated")

    with pytest.raises(RowError, match="the file ends here"):
        ran(breaking())


# --- the rest ---------------------------------------------------------------------------


def test_progress_is_reported_in_order_and_ends_with_all_rows(chunks, cloud):
    told = []
    ran(chunks(cloud(), 50), progress=told.append)
    assert told == list(range(50, 650, 50))


def test_progress_counts_skipped_rows_too(chunks, cloud):
    rows = cloud()
    rows[::7] = np.nan
    told = []
    ran(chunks(rows, 50), skip_bad=True, progress=told.append)
    assert told[-1] == 600


def test_no_chunks_are_an_empty_survey():
    survey, skipped = ran([])
    assert survey.held == {} and skipped == 0


def test_one_chunk_needs_only_one_lane(chunks, cloud):
    assert ran(chunks(cloud(), 600))[0].held[PLACE][Tally].count == 600


def test_a_second_pass_starts_from_what_the_first_has_found(chunks, cloud):
    rows = cloud(mean=4.0)
    first, _ = ran(chunks(rows, 50), (Tally, Moments))
    start = Survey({PLACE: second_passes(first.held[PLACE], SECOND_PASS)})
    second, _ = ran(chunks(rows, 50), SECOND_PASS, start=start)
    centred = second.held[PLACE][CentredDirections]
    assert centred.count == 600
    moved = rows - rows.mean(axis=0)
    units = moved / np.linalg.norm(moved, axis=1)[:, None]
    np.testing.assert_allclose(centred.finalize().total, units.sum(axis=0), atol=1e-10)
    assert start.held[PLACE][CentredDirections].count == 0  # both lanes had copies of it


def test_the_seed_deals_the_rows_anew(chunks, cloud):
    one, other = (ran(chunks(cloud(), 100), seed=seed)[0] for seed in (0, 1))
    means = [s.held[PLACE][Moments].finalize().halves[0].origin for s in (one, other)]
    assert not np.isclose(*means).any()


@pytest.mark.parametrize(
    ("width", "itemsize", "rows"),
    [(768, 4, 8192), (768, 8, 4096), (1, 4, 65_536), (100_000, 8, 62), (12_288, 4, 512)],
)
def test_blocks_have_about_twenty_five_megabytes(width, itemsize, rows):
    assert block_rows(width, itemsize) == rows
