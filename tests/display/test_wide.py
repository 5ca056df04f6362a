"""One record per site, one column per measure."""

import pickle

from isoscope.display import READINGS, Results
from isoscope.display.wide import side_by_side
from isoscope.types import Reading


def readings(*measures, variants=("all",), n=9):
    return [
        Reading("a", site, variant, "", None, measure, 0.5, 0.4, None, n, 3)
        for site in ("resid.0", "resid.1")
        for variant in variants
        for measure in measures
    ]


def test_a_measure_that_a_site_lacks_is_empty():
    found = readings("isoscore", "alpha")[:-1]
    lines = side_by_side(Results(found, READINGS, left_out=["alpha: too few"])).to_dict()
    assert [line["site"] for line in lines] == ["resid.0", "resid.1"]
    assert [line["alpha"] for line in lines] == [0.5, None]
    assert [line["isoscore high"] for line in lines] == [None, None]


def test_data_has_every_measure_and_tables_the_usual_ones():
    names = ["mean-cosine-cross", "mean-share", *(f"m{number}" for number in range(7))]
    wide = side_by_side(Results(readings(*names), READINGS))
    (table,) = wide.tables
    assert [c.head for c in table.columns] == ["site", *names[:2], "n", "d"]
    assert set(names) <= wide.to_dict()[0].keys()


def test_variants_with_the_rows_of_all_are_dropped_and_results_can_be_pickled():
    wide = side_by_side(Results(readings("alpha", variants=("all", "no-sink")), READINGS))
    assert [line["variant"] for line in wide.to_dict()] == ["all", "all"]
    assert pickle.loads(pickle.dumps(wide)).to_csv() == wide.to_csv()
