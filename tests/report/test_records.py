"""Records: every format says the same, and nothing in it is obeyed."""

import csv
import json
from dataclasses import dataclass
from io import StringIO

import pytest

from isoscope.report.records import Records
from isoscope.report.table import Column, Table


@dataclass(frozen=True)
class Weighed:
    name: str
    parts: list[int]
    weight: float | None = None

    def to_dict(self):
        return {"name": self.name, "parts": self.parts, "weight": self.weight}


class Weights(Records[Weighed]):
    @property
    def tables(self):
        names = Column("name", tuple(each.name for each in self), words=True)
        counts = Column("parts", tuple(str(len(each.parts)) for each in self))
        return (Table("first", (names,), self.remarks), Table("second", (counts,)))


FOUND = Weights(
    [Weighed("a_b", [1, 2], 0.5), Weighed("c\x1b[2J", [], None)],
    shared={"run": "r"},
    remarks=["mind this"],
)


def test_json_is_an_object_a_line_that_begins_with_what_is_shared():
    lines = [json.loads(line) for line in FOUND.to_json().splitlines()]
    assert lines == FOUND.to_dict()
    assert list(lines[0]) == ["run", "name", "parts", "weight"]
    assert lines[0] == {"run": "r", "name": "a_b", "parts": [1, 2], "weight": 0.5}


def test_csv_has_lists_as_json_and_harmless_names():
    head, first, second = csv.reader(StringIO(FOUND.to_csv()))
    assert head == ["run", "name", "parts", "weight"]
    assert first == ["r", "a_b", "[1, 2]", "0.5"]
    assert second == ["r", "c\\x1b[2J", "[]", ""]


def test_lines_of_different_kinds_share_one_header():
    class Mixed(Weights):
        def lines(self):
            return [{"a": 1}, {"b": 2}]

    assert Mixed(FOUND).to_csv() == "a,b\n1,\n,2\n"


@pytest.mark.parametrize("show", [str, Weights.to_markdown, Weights.to_latex])
def test_tables_stand_one_under_another(show):
    text = show(FOUND)
    assert text.index("first") < text.index("mind this") < text.index("second")
    assert repr(FOUND) == str(FOUND)


def test_a_notebook_shows_both_tables():
    html = FOUND._repr_html_()
    assert html.count("<table>") == 2 and "mind this" in html


def test_nan_is_no_json():
    with pytest.raises(ValueError, match="JSON compliant"):
        Weights([Weighed("a", [], float("nan"))]).to_json()


def test_records_without_tables_have_none():
    with pytest.raises(NotImplementedError):
        _ = Records([FOUND[0]]).tables
