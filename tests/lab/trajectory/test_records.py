"""What units of a trajectory return, and how it looks in a table."""

from isoscope.display import Results
from isoscope.lab.trajectory.results import (
    COURSES,
    Course,
    OnsetFound,
    SuddenFound,
    course_tables,
)
from isoscope.lab.trajectory.theories import Theories
from isoscope.measures.difference import Difference


def course(measure, group=""):
    none = SuddenFound(None, None, None, None, None)
    ends = [0.0, 0.0], [1.0, 1.0]
    difference = Difference(0.25, 0.1, 0.4, 0.01)
    onset = OnsetFound(10, 0.01)
    place = "norm.out", "all", group, measure
    curve = [0, 10], [0.25, 0.5], *ends
    return Course(*place, *curve, [difference], onset, none, [])


def test_the_table_shows_the_usual_measures_and_counts_the_others():
    others = ("twonn", "alpha", "stable-rank", "top-share", "norm-spread", "participation")
    found = Results(
        [course("mean-share"), *map(course, others), course("mean-share", "frequency 0")],
        COURSES,
        shared={"series": "s", "checkpoints": 2, "first": 0, "last": 10},
    )
    (table,) = course_tables(found)
    assert len(table.rows) == 1 and table.caption == "s, 2 checkpoints, step 0 to 10"
    assert any("7 more lines" in text for text in table.warnings + table.notes)
    assert found[0].change.value == 0.25


def test_the_table_shows_every_measure_where_a_few_were_chosen():
    found = Results(
        [course("mean-cosine"), course("mean-share"), course("loss"), course("partition")],
        COURSES,
        shared={"series": "s", "checkpoints": 2, "first": 0, "last": 10},
    )
    table = course_tables(found)[0]
    assert [row[1] for row in table.rows] == ["mean-cosine", "mean-share", "loss"]


def test_older_theories_have_tables_of_their_own_with_the_chance_beside_the_hull():
    found = Results(
        [
            course("mean-share"),
            course("hull-if-isotropic"),
            course("hull-has-origin"),
            course("row-norm", "frequency 0"),
            course("away-cosine", "frequency 0"),
            course("row-norm"),
        ],
        COURSES,
        shared={"series": "s", "checkpoints": 2, "first": 0, "last": 10},
    )
    first, theories, bands = course_tables(found)
    assert any("1 more line" in text for text in first.warnings)
    assert [row[1:] for row in theories.rows] == [
        ("hull-has-origin", "0.25", "0.50"), ("hull-if-isotropic", "0.25", "0.50")
    ]  # fmt: skip
    assert "Wendel" in theories.notes[0]
    assert bands.rows == [("norm.out", "0", "0.25 to 0.50", "0.25 to 0.50")]


def test_a_band_along_one_direction_shares_all_of_it():
    import numpy as np

    rows = np.outer([1.0, 2.0, 3.0, 4.0], [3.0, 4.0]) / 5  # lengths 1 to 4, one direction
    theories = Theories(None, None, np.zeros(0), None)
    theories._rows_of_band("embed.weight", "frequency 0", rows, np.array([-0.6, -0.8]))
    found = {each.measure: each.value for each in theories.found}
    assert found["row-norm"] == 2.5
    np.testing.assert_allclose(found["common-share"], 2.5**2 / 7.5)
    np.testing.assert_allclose(found["away-projection"], 2.5)
    np.testing.assert_allclose(found["away-cosine"], 1.0)
