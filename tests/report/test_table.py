"""The layout every format starts from."""

from isoscope.report.table import table


def heads(readings, **options):
    return [column.head for column in table(readings, **options).columns]


def test_what_all_readings_share_goes_into_the_caption(make):
    laid = table([make("isoscore", 0.5), make("alpha", 1.0)])
    assert laid.caption == "run notes, site rows, variant all"
    assert [column.head for column in laid.columns] == ["measure", "value", "n", "d"]


def test_what_differs_becomes_a_column(make):
    readings = [make("isoscore", 0.5, site="resid.0", step=0), make("isoscore", 0.4, step=10)]
    assert heads(readings) == ["site", "step", "measure", "value", "n", "d"]


def test_a_warning_is_listed_once_and_marked_where_it_belongs(make):
    readings = [
        make("a", 0.5, warnings=("few rows",)),
        make("b", 0.5, warnings=("duplicates", "few rows")),
        make("c", 0.5),
    ]
    laid = table(readings)
    assert laid.warnings == ("few rows", "duplicates")
    assert laid.columns[-1].cells == ("1", "2 1", "")


def test_a_reference_is_shown_for_its_measure_and_size_only(make):
    readings = [make("a", 0.5), make("a", 0.5, n=7), make("b", 0.5)]
    laid = table(readings, isotropic={("a", 5000, 768): 1.0})
    assert next(c for c in laid.columns if c.head == "isotropic").cells == ("1", "", "")


def test_no_readings_have_no_rows():
    assert table([]).rows == []
