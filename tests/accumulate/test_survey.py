"""Surveys: they merge as their accumulators do, come back from disk, and give readings."""

import numpy as np
import pytest

from isoscope.accumulate import (
    ACCUMULATORS,
    CentredDirections,
    Copies,
    Directions,
    Groups,
    Moments,
    Partitions,
    Reservoir,
    Tally,
)
from isoscope.accumulate.survey import SECOND_PASS, Survey
from isoscope.errors import MergeError
from isoscope.measures import MEASURES
from isoscope.study.lanes import run
from isoscope.study.reading import (
    kinds_for,
    measurable,
    read_survey,
    second_passes,
    survey_spreads,
)
from isoscope.types import Chunk

PLACE = ("rows", "all")


def read(survey, names=None, **options):
    return read_survey(survey, names, **options)[0]


DEFAULT = [m.name for m in MEASURES.values() if m.default]
SECOND = [m.name for m in MEASURES.values() if m.second_pass]


def twice(rows, chunks, size=100, source="a"):
    """A survey of both passes."""
    survey, _ = run(
        chunks(rows, size, source=source),
        PLACE,
        [kind for kind in kinds_for([*DEFAULT, *SECOND]) if kind not in SECOND_PASS],
    )
    start = Survey({PLACE: second_passes(survey.held[PLACE], SECOND_PASS)})
    again, _ = run(chunks(rows, size, source=source), PLACE, SECOND_PASS, start=start)
    survey.held[PLACE].update(again.held[PLACE])
    return survey


def values(readings):
    return {reading.measure: reading.value for reading in readings}


# --- what is kept -----------------------------------------------------------------------


def test_each_measure_keeps_what_it_reads_and_what_warnings_need():
    assert kinds_for(["mean-cosine"]) == (Tally, Directions, Copies)
    assert kinds_for([]) == (Tally, Copies)


@pytest.mark.parametrize("name", [*DEFAULT, *SECOND])
def test_every_measure_finds_what_it_needs(name):
    kinds = kinds_for([name])
    assert set(MEASURES[name].reads.needs) <= set(kinds)
    assert len(set(kinds)) == len(kinds)


def test_second_passes_keep_what_they_start_from():
    assert {Moments, Reservoir, CentredDirections} <= set(kinds_for(["mean-cosine-centred"]))


def test_the_order_of_the_kinds_does_not_depend_on_the_order_of_the_names():
    assert kinds_for(DEFAULT) == kinds_for(DEFAULT[::-1])
    order = [kind for kind in ACCUMULATORS if kind in kinds_for(DEFAULT)]
    assert list(kinds_for(DEFAULT)) == order


# --- merging ----------------------------------------------------------------------------


def test_parts_merge_into_the_whole(survey, cloud, chunks):
    rows = cloud()
    whole = survey(rows, DEFAULT)
    parts = [
        run(chunk, PLACE, kinds_for(DEFAULT))[0] for chunk in ([c] for c in chunks(rows, 150))
    ]
    total = Survey()
    for part in parts[::-1]:
        total.merge(part)
    for ours, theirs in zip(
        read_survey(whole, DEFAULT)[0], read_survey(total, DEFAULT)[0], strict=True
    ):
        assert theirs.value == pytest.approx(ours.value, rel=1e-10), ours.measure
        assert theirs.n == ours.n and theirs.warnings == ours.warnings


def test_merging_leaves_the_other_alone(survey, cloud, assert_same):
    rows = cloud()
    one = survey(rows, DEFAULT, seed=1)  # other documents, by their keys
    other, untouched = (survey(rows[:300], DEFAULT) for _ in range(2))
    empty = Survey()
    empty.merge(other)
    empty.merge(one)
    assert_same(other, untouched)


def test_an_empty_survey_changes_nothing(survey, cloud, assert_same):
    one, other = (survey(cloud(), DEFAULT) for _ in range(2))
    one.merge(Survey())
    assert_same(one, other)


def test_surveys_that_kept_different_summaries_do_not_merge(survey, cloud):
    for first, second in ((["mean-cosine"], ["isoscore"]), (["isoscore"], ["mean-cosine"])):
        with pytest.raises(MergeError, match="kept different summaries at rows") as caught:
            survey(cloud(), first).merge(survey(cloud(), second))
        assert caught.value.slug == "merge-kind"


def test_a_refused_merge_of_kinds_changes_nothing(survey, cloud, assert_same):
    one, untouched = (survey(cloud(), ["mean-cosine"]) for _ in range(2))
    with pytest.raises(MergeError):
        one.merge(survey(cloud(), ["isoscore"]))
    assert_same(one, untouched)


def test_surveys_of_different_width_do_not_merge(survey, cloud):
    with pytest.raises(MergeError, match=r"width=6.*width=5"):
        survey(cloud(), DEFAULT).merge(survey(cloud(d=5), DEFAULT))


def test_rows_with_documents_and_rows_without_do_not_merge(survey, cloud):
    rows = cloud()
    named = survey(rows, DEFAULT, documents=np.repeat(np.arange(120), 5))
    with pytest.raises(MergeError, match="rows that have documents"):
        named.merge(survey(rows, DEFAULT))


def test_other_sites_are_taken_over(survey, cloud):
    one, other = survey(cloud(), DEFAULT), Survey()
    other.held[("resid.1", "all")] = survey(cloud(seed=9), DEFAULT).held[PLACE]
    one.merge(other)
    assert list(one.held) == [PLACE, ("resid.1", "all")]
    assert {reading.site for reading in read(one, ["isoscore"])} == {"rows", "resid.1"}


def test_second_passes_about_different_means_are_forgotten(cloud, chunks):
    one, other = twice(cloud(), chunks), twice(cloud(seed=5), chunks, source="b")
    one.merge(other)
    assert not set(SECOND_PASS) & set(one.held[PLACE])
    assert one.held[PLACE][Tally].count == 1200


def test_a_second_pass_that_only_one_made_is_forgotten(cloud, chunks, survey):
    bare = survey(cloud(seed=5), DEFAULT)
    both = twice(cloud(), chunks, source="b")
    both.merge(bare)
    assert not set(SECOND_PASS) & set(both.held[PLACE])
    bare.merge(twice(cloud(), chunks, source="c"))
    assert not set(SECOND_PASS) & set(bare.held[PLACE])


def test_second_passes_from_the_same_first_pass_add_up(cloud, chunks):
    rows = cloud()
    first, _ = run(chunks(rows, 100), PLACE, (Tally, Moments))
    start = Survey({PLACE: second_passes(first.held[PLACE], SECOND_PASS)})
    halves = [run([part], PLACE, SECOND_PASS, start=start)[0] for part in chunks(rows, 300)]
    halves[0].merge(halves[1])
    assert halves[0].held[PLACE][CentredDirections].count == 600


# --- saving -----------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [False, True])
def test_a_survey_comes_back_from_its_state(survey, cloud, assert_same, grouped):
    documents = np.repeat(np.arange(120), 5) if grouped else None
    one = survey(cloud(), DEFAULT, documents)
    back = Survey.from_state(*one.to_state())
    assert_same(one, back)
    assert values(read(back, DEFAULT)) == pytest.approx(values(read(one, DEFAULT)), rel=1e-10)


def test_a_second_pass_comes_back_too(cloud, chunks, assert_same):
    one = twice(cloud(), chunks)
    back = Survey.from_state(*one.to_state())
    assert_same(one, back)
    assert values(read(back, SECOND)) == pytest.approx(values(read(one, SECOND)), rel=1e-12)


def test_a_survey_that_came_back_continues(survey, cloud, assert_same):
    rows = cloud()
    back = Survey.from_state(*survey(rows[:300], DEFAULT).to_state())
    chunk = Chunk(rows[300:], "a", 300)
    back.merge(run([chunk], PLACE, kinds_for(DEFAULT))[0])
    assert_same(back, survey(rows, DEFAULT), rtol=1e-5)


def test_names_of_sites_may_hold_dots(survey, cloud, assert_same):
    one = Survey({("q.3.11", "no-sink"): survey(cloud(), DEFAULT).held[PLACE]})
    assert_same(one, Survey.from_state(*one.to_state()))


# --- reading ----------------------------------------------------------------------------


def test_readings_come_in_the_order_requested(survey, cloud):
    names = ["isoscore", "mean-cosine", "alpha", "mean-share"]
    one = survey(cloud(d=40), names)
    assert [reading.measure for reading in read(one, names)] == names
    assert [reading.measure for reading in read(one, names[::-1])] == names[::-1]


def test_without_names_everything_that_is_held_is_read(survey, cloud):
    one = survey(cloud(d=40), ["mean-cosine"])
    expected = ["mean-cosine", "mean-cosine-cross", "outlier-share"]
    assert [reading.measure for reading in read(one)] == expected
    assert list(measurable(one.held[PLACE])) == expected


def test_a_reading_says_where_it_is_from(survey, cloud):
    (reading,) = read(survey(cloud(), ["isoscore"]), ["isoscore"], run="study")
    assert (reading.run, reading.site, reading.variant) == ("study", "rows", "all")
    assert (reading.group, reading.step, reading.n, reading.d) == ("", None, 600, 6)
    assert reading.low < reading.value < reading.high


def test_companions_follow_their_measure(cloud, chunks):
    found = read(twice(cloud(), chunks), ["partition", "mean-cosine"])
    assert [reading.measure for reading in found] == [
        "partition",
        "partition-log",
        "partition-reference",
        "mean-cosine",
    ]
    assert found[0].value == pytest.approx(np.exp(found[1].value))


def test_what_cannot_be_computed_is_excluded_with_its_reason(survey):
    same = survey(np.ones((50, 6)), DEFAULT)
    readings, left_out = read_survey(same, DEFAULT)
    found = values(readings)
    assert found["mean-cosine"] == pytest.approx(1) and found["mean-share"] == pytest.approx(1)
    assert "isoscore" not in found
    assert left_out["isoscore"] == "a spectrum needs rows that differ, got identical rows"
    assert left_out["twonn"].startswith("an intrinsic dimension needs at least 22 distinct")
    assert set(found) | set(left_out) == set(DEFAULT)


def test_a_summary_that_was_not_kept_is_the_reason_given(survey, cloud):
    one = survey(cloud(), ["mean-cosine"])
    reason = {"isoscore": "no moments were kept, which this measure reads"}
    assert read_survey(one, ["isoscore"]) == ([], reason)


def test_what_can_be_computed_is_not_excluded(survey, cloud):
    assert read_survey(survey(cloud(), ["mean-cosine"]), ["mean-cosine"])[1] == {}


def test_settings_reach_the_measures_that_take_them(survey, cloud):
    one = survey(cloud(), ["isoscore", "isoscore-star"])
    plain, star = read(one, ["isoscore", "isoscore-star"], zeta=0.0)
    assert star.value == pytest.approx(plain.value, rel=1e-12)
    assert read(one, ["isoscore-star"], zeta=0.5)[0].value > star.value


def test_as_published_is_reported_where_it_differs(survey, cloud):
    one = survey(cloud(), ["isoscore", "isoscore-star"])
    plain, star = read(one, ["isoscore", "isoscore-star"], as_published=True)
    said = "as published, not as isoscope defines it"
    assert said in star.warnings and said not in plain.warnings
    assert star.value != read(one, ["isoscore-star"])[0].value


# --- second passes ----------------------------------------------------------------------


def test_a_second_pass_reads_the_definition(cloud, chunks):
    rows = cloud(mean=2.0)
    found = values(read(twice(rows, chunks), SECOND))
    moved = rows - rows.mean(axis=0)
    units = moved / np.linalg.norm(moved, axis=1)[:, None]
    cosines = (units @ units.T)[~np.eye(600, dtype=bool)]
    assert found["mean-cosine-centred"] == pytest.approx(cosines.mean(), abs=1e-12)
    axes = np.linalg.eigh(rows.T @ rows)[1]
    sums = np.exp(rows @ np.concatenate([axes, -axes], axis=1)).sum(axis=0)
    assert found["partition"] == pytest.approx(sums.min() / sums.max(), rel=1e-9)


def test_where_it_was_not_made_the_sample_stands_in(survey, cloud, chunks):
    # 600 rows are all in the sample, so that it must read the same.
    rows = cloud()
    once = survey(rows, [*DEFAULT])
    both = twice(rows, chunks)
    assert values(read(once, SECOND)) == pytest.approx(values(read(both, SECOND)), rel=1e-9)
    for reading in read(once, SECOND):
        assert not any("sample" in warning for warning in reading.warnings)


def test_a_sample_of_the_rows_is_reported_as_one(survey, cloud, chunks):
    rows = cloud(n=5000)
    once, both = survey(rows, DEFAULT, size=1000), twice(rows, chunks, 1000)
    for reading in read(once, SECOND):
        assert "from a sample of 2048 of 5000 rows" in reading.warnings
    for reading in read(both, SECOND):
        assert not any("sample" in warning for warning in reading.warnings)
    ours, theirs = values(read(once, SECOND)), values(read(both, SECOND))
    assert ours["partition"] == pytest.approx(theirs["partition"], rel=0.2)


def test_looking_at_the_sample_does_not_change_the_survey(survey, cloud, assert_same):
    one, other = (survey(cloud(), DEFAULT) for _ in range(2))
    read(one, [*DEFAULT, *SECOND])
    assert_same(one, other)


def test_without_a_sample_a_second_pass_is_excluded(survey, cloud):
    one = survey(cloud(), ["mean-cosine"])
    readings, left_out = read_survey(one, SECOND)
    assert readings == []
    assert "no centreddirections were kept" in left_out["mean-cosine-centred"]


def test_the_axes_of_the_second_pass_are_those_of_the_raw_rows(survey, cloud):
    rows = cloud(mean=3.0)
    one = survey(rows, DEFAULT)
    axes = second_passes(one.held[PLACE], [Partitions])[Partitions].axes
    np.testing.assert_allclose(axes.T @ axes, np.eye(6), atol=1e-12)
    turned = axes.T @ (rows.T @ rows) @ axes
    off = turned - np.diag(np.diag(turned))
    assert np.abs(off).max() < 1e-9 * np.abs(turned).max()
    assert (np.diff(np.diag(turned)) <= 0).all()


def test_groups_are_kept_for_intervals():
    assert Groups in kinds_for(["isoscore"])


# --- spreads -----------------------------------------------------------------------------


def documents_of(seed, *, named=True):
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(600, 8)) + 0.5).astype(np.float32)
    names = np.repeat(np.arange(60), 10).astype(str) if named else None
    return run([Chunk(rows, "a", 0, documents=names)], PLACE, kinds_for(DEFAULT))[0]


@pytest.mark.parametrize("named", [True, False], ids=["documents", "rows"])
def test_every_reading_with_an_interval_has_a_spread_of_the_same_groups(named):
    first, second = documents_of(1, named=named), documents_of(2, named=named)
    ours, theirs = survey_spreads(first, DEFAULT), survey_spreads(second, DEFAULT)
    there = {("rows", r.measure) for r in read_survey(first, DEFAULT)[0] if r.low is not None}
    assert ours.keys() == theirs.keys() == there
    for key, spread in ours.items():
        assert spread.error > 0
        np.testing.assert_array_equal(spread.keys, theirs[key].keys, err_msg=str(key))


def test_spreads_of_a_variant_that_is_not_there_are_none():
    assert survey_spreads(documents_of(1), ["isoscore"], "no-sink") == {}


def test_a_state_of_many_places_is_rebuilt_in_one_look(survey, cloud):
    """Every name was compared with every place and kind: ten million times here."""
    meta, arrays = survey(cloud(60), ["mean-cosine"]).to_state()
    (place,) = meta["places"]
    seen = 0

    class Counted(dict):
        def items(self):
            nonlocal seen
            for pair in super().items():
                seen += 1
                yield pair

    places = [{**place, "site": f"q.{number}"} for number in range(400)]
    many = Counted(
        (f"{number}.{name.partition('.')[2]}", array)
        for number in range(400)
        for name, array in arrays.items()
    )
    found = Survey.from_state({"places": places, "trouble": {}}, many)
    assert len(found.held) == 400
    assert seen == len(many)
