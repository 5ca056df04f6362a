"""Results: every kind of record is shown and converted by one class."""

import csv
import json
import pickle
from copy import copy
from io import StringIO

import polars
import pytest

from isoscope.causes.cause import Cause
from isoscope.comparison.changes import CHANGES
from isoscope.comparison.outcomes import OUTCOMES
from isoscope.display import READINGS, RecordLayout, Results
from isoscope.display.frames import Field
from isoscope.display.table import Column, Table
from isoscope.lab.dimensions.results import DIMENSIONS, Dimension, SiteDimensions
from isoscope.lab.explain.results import CAUSES
from isoscope.lab.matrices.results import MATRICES, MatrixIsotropy
from isoscope.lab.norm.results import (
    NORMS,
    Gained,
    NormOutliers,
    NormStep,
    NormSteps,
    RoleOutliers,
)
from isoscope.lab.probe.one_dimension import OneDimension
from isoscope.lab.probe.results import PROBES, Probe
from isoscope.lab.sweep.results import SWEEP_LINES, SweepLine
from isoscope.lab.zero.results import ZEROED, ZeroedDimension
from isoscope.measures.difference import Difference
from isoscope.types import Change, GateOutcome, Reading

SITE = SiteDimensions(
    site="embed", variant="all", n=90, d=8, mean_cosine=0.3,
    top=[
        Dimension(3, 0.4, 0.3, 0.5, 1.2, 9.0, 4.0),
        Dimension(1, None, None, None, 0.1, 1.0, None),
    ],
    wide=[3], most_kurtotic=[3, 1], r_squared={1: 0.8, 3: None},
    mean_cosine_without={1: 0.1, 3: None}, sample=64,
)  # fmt: skip
STEP = NormSteps(
    "norm", "all", [NormStep("mean-cosine", 0.5, None, 0.2)], 0.1,
    Gained(90, 0.5, 0.4, 0.3, 0.2, None),
)  # fmt: skip
ROLE = RoleOutliers(
    "", "output.LayerNorm", 2, 8, {3: 2}, {}, [], [NormOutliers("layer.0.norm", [3], [])]
)
MEANS = {"isoscore-star": {"resid.0": 0.2}}
FULL = {
    "readings": Results(
        [Reading("a", "rows", "all", "", None, "isoscore", 0.5, 0.4, None, 9, 3, ("few",))],
        READINGS, isotropic={("isoscore", 9, 3): 1.0},
    ),
    "changes": Results(
        [
            Change(
                "embed", "embed", "all", 3, "alpha", 0.5, None, None, 0.6, 0.5, 0.7, 0.1, None,
                None, True, 0.01, 0.16, 0.6, "changed", ("odd",),
            )
        ],
        CHANGES, shared={"run_a": "old", "run_b": "new", "negligible_below": 0.01},
    ),
    "outcomes": Results(
        [GateOutcome("alpha > 2", "a", "embed", "all", "alpha", "breached", "3 > 2", 3.0)],
        OUTCOMES,
    ),
    "causes": Results(
        [
            Cause(
                "a", "embed", "all", "dimensions", "removal", 0.4, None, None, 0.3, 0.3, 90, 8,
                "3 (40%)", named=({"dimension": 3, "share": 0.4},), warnings=("few",),
            )
        ],
        CAUSES,
    ),
    "dimensions": Results([SITE], DIMENSIONS, shared={"run": "a"}),
    "zeroed": Results(
        [ZeroedDimension(3, "top", 0.4, 0.2, 0.1, None, 2.5)], ZEROED,
        shared={"model": "m", "norms": ["f"], "documents": 4, "tokens": 90, "d": 8},
    ),
    "matrices": Results(
        [MatrixIsotropy("embed.weight", True, 90, 8, 0.5, -0.7, 0.6, None)], MATRICES,
        shared={"model": "m", "tied": False},
    ),
    "probed": Results(
        [
            Probe(
                "norm.out", "last",
                OneDimension(3, 0.1, "yes", "no", 0.9, 0.8, 0.7, 0.9, 0.5, 45, 45, 8, False),
            )
        ],
        PROBES, shared={"model": "m"},
    ),
    "norms": Results(
        [ROLE, STEP], NORMS, shared={"model": "m"}
    ),
    "sweep": Results(
        [
            SweepLine(0.0, [0, 1], [0.8, 0.9], 0.85, 0.07, None, 0.4, MEANS, MEANS),
            SweepLine(
                1.0, [0, 1], [0.7, 0.9], 0.8, 0.1, Difference(-0.05, None, None, None), 0.5,
                MEANS, MEANS,
            ),
        ],
        SWEEP_LINES,
        shared={
            "model": "m", "task": "t", "penalty": "istar", "metric": "accuracy",
            "baseline": 0.5, "learnt": None, "diverged": [], "steps": 9, "seeds": 2,
        },
    ),
}  # fmt: skip
every_kind = pytest.mark.parametrize("kind", FULL)


@every_kind
def test_dictionaries_go_through_json_and_back(kind):
    found = FULL[kind]
    assert [json.loads(line) for line in found.to_json().splitlines()] == found.to_dict()


@every_kind
def test_csv_has_a_column_for_every_value(kind):
    found = FULL[kind]
    head, *rows = csv.reader(StringIO(found.to_csv()))
    names = list(dict.fromkeys(name for line in found._lines() for name in line))
    assert head == names == [field.name for field in found.layout.fields]
    assert len(rows) >= len(found)


@every_kind
def test_frames_have_the_rows_of_csv_and_its_columns(kind):
    found = FULL[kind]
    pandas, polars_ = found.to_pandas(), found.to_polars()
    assert len(pandas) == len(polars_) == len(found.to_csv().splitlines()) - 1
    assert list(pandas.columns) == polars_.columns
    assert set(polars_.columns) >= {field.name for field in found.layout.fields}


@every_kind
def test_no_records_have_the_types_that_records_have(kind):
    found = FULL[kind]
    assert found[:0].to_polars().schema == found.to_polars().schema
    assert found[:0].to_pandas().dtypes.equals(found.to_pandas().dtypes)
    assert Results([], found.layout).to_polars().schema == found.to_polars().schema


@every_kind
def test_a_slice_keeps_what_belongs_to_all(kind):
    found = FULL[kind].with_records(FULL[kind])
    found.remarks, found.left_out, found.trouble = ("mind",), ("x: few",), {"embed": "row 3"}
    part = found[:1]
    assert isinstance(part, Results) and list(part) == list(found)[:1]
    for name in ("layout", "remarks", "left_out", "shared", "trouble", "isotropic"):
        assert getattr(part, name) == getattr(found, name), name
    assert found[0] == next(iter(found))


@every_kind
@pytest.mark.parametrize("again", [copy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_is_the_same(kind, again):
    same = again(FULL[kind])
    assert str(same) == str(FULL[kind])
    assert same.to_json() == FULL[kind].to_json()
    assert same.left_out == FULL[kind].left_out


@every_kind
def test_tables_are_the_same_in_every_format(kind):
    found = FULL[kind]
    heads = {column.head for table in found.overview for column in table.columns}
    text, html = str(found), found._repr_html_()
    assert all(head in text for head in heads)
    assert html.count("<table>") == len(found.overview)
    assert found.to_markdown().count("| --: |") or ":--" in found.to_markdown()
    assert found.to_latex().count(r"\begin{tabular}") == len(found.tables)
    assert repr(found) == text


@every_kind
def test_no_records_are_shown_as_none_in_every_format(kind):
    none = FULL[kind][:0]
    assert none.to_json() == "" and len(none.to_csv().splitlines()) == 1
    for text in (str(none), none.to_markdown(), none.to_latex(), none._repr_html_()):
        assert "isoscore" not in text


@every_kind
def test_every_kind_has_a_summary_in_words(kind):
    assert FULL[kind].summary and FULL[kind][:0].summary


def test_named_values_are_json_text_and_warnings_lists():
    frame = FULL["causes"].to_polars()
    assert json.loads(frame["named"][0]) == [{"dimension": 3, "share": 0.4}]
    assert frame["warnings"].to_list() == [["few"]]


def test_values_of_norms_are_numbers_or_text():
    frame = FULL["norms"].to_polars()
    cells = {name: (value, text) for *_, name, value, text in frame.rows()}
    assert cells["gain"] == (None, "[3]")
    assert cells["mean-cosine before"] == (0.5, None)
    assert cells["mean-cosine between"] == (None, None)
    assert frame.schema["value"] == polars.Float64


def test_a_breach_and_a_site_with_nan_are_not_ok():
    assert not FULL["outcomes"].ok and FULL["outcomes"][:0].ok
    found = FULL["readings"].with_records(FULL["readings"])
    assert found.ok
    found.trouble = {"embed": "row 3"}
    assert not found.ok


def weights(found):
    names = Column("name", tuple(name for name, _ in found), words=True)
    parts = Column("parts", tuple(str(len(parts)) for _, parts in found))
    return (Table("first", (names,), found.remarks), Table("second", (parts,)))


def weighed(record):
    return {"name": record[0], "parts": record[1]}


WEIGHTS = RecordLayout("weights", weights, weighed, (Field("name"), Field("parts", "numbers")))
FOUND = Results(
    [("a", [1.0, 2.0]), ("b", [])], WEIGHTS, remarks=["mind this"], left_out=["c: gone"]
)


def test_lines_begin_with_what_is_shared():
    shared = Results(FOUND, WEIGHTS, shared={"run": "r"})
    assert list(shared.to_dict()[0]) == ["run", "name", "parts"]


@pytest.mark.parametrize("show", [str, Results.to_markdown, Results.to_latex])
def test_tables_stand_one_under_another(show):
    text = show(FOUND)
    assert text.index("first") < text.index("mind this") < text.index("second")


def test_a_notebook_shows_both_tables():
    html = FOUND._repr_html_()
    assert html.count("<table>") == 2 and "mind this" in html


def test_nan_is_no_json():
    with pytest.raises(ValueError, match="JSON compliant"):
        FOUND.with_records([("a", [float("nan")])]).to_json()


def test_data_has_its_remarks_beside_it_and_tables_have_them_in_them():
    assert FOUND.notes("json") == FOUND.notes("csv") == ("note: mind this", "skipped: c: gone")
    assert FOUND.notes() == FOUND.notes("latex") == FOUND.notes("markdown") == ()
    assert FOUND.summary == "2 weights"
