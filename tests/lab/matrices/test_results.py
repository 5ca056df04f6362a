"""matrices: I(W) of each matrix, tied or not, two-sided or as published."""

import json

import pytest

import isoscope as iso
from isoscope.errors import UndefinedError


def test_it_is_what_the_lab_says(untied):
    found = iso.matrices(untied)
    (table,) = found.tables
    assert [row[:2] for row in table.rows] == [
        ("embed.weight", "the origin"),
        ("embed.weight", "its mean"),
        ("unembed.weight", "the origin"),
        ("unembed.weight", "its mean"),
    ]
    assert float(table.rows[0][2]) == pytest.approx(found[0].value, rel=1e-3)
    assert table.warnings == ()
    assert {each["tied"] for each in found.to_dict()} == {False}


def test_tied_matrices_are_measured_once_and_it_is_reported(speaker):
    found = iso.matrices(speaker)
    assert {each.site for each in found} == {"embed.weight"}
    assert "1  tied: the output matrix is the input matrix" in str(found)
    assert all(each["tied"] for each in found.to_dict())


def test_the_published_value_is_shown_on_request_and_both_are_in_json(untied):
    plain, published = iso.matrices(untied), iso.matrices(untied, as_published=True)
    assert plain.to_json() == published.to_json()
    first = json.loads(plain.to_json().splitlines()[0])
    shown = [float(found.tables[0].rows[0][2]) for found in (plain, published)]
    assert shown == pytest.approx([first["value"], first["as_published"]], rel=1e-3)
    assert "one sign of each eigenvector" in str(published)
    assert "log I(W)" not in str(published)


def test_random_rows_are_drawn_on_request(untied):
    found = iso.matrices(untied, against_random=True)
    assert all(0 < each.reference <= 1 for each in found)
    assert "random rows" in str(found)
    assert "random rows" not in str(iso.matrices(untied))


def test_a_model_without_matrices_says_so(normless):
    with pytest.raises(UndefinedError, match="a row for each token in normless") as raised:
        iso.matrices(normless)
    assert raised.value.slug == "no-matrix"
