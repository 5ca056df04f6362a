"""Columns side by side."""

from isoscope.display.table import Column, Table


def test_rows_are_the_cells_of_all_columns():
    table = Table("", (Column("a", ("1", "2")), Column("b", ("x", "y"), words=True)))
    assert table.rows == [("1", "x"), ("2", "y")]


def test_a_table_without_columns_has_no_rows():
    assert Table("nothing", ()).rows == []
