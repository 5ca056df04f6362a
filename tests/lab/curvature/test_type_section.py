"""Charts of token types: lines through the middle, and types without variance."""

from isoscope.display.page.section import Exhibit
from isoscope.lab.curvature.type_results import TypePoint
from isoscope.lab.curvature.type_section import TypeCurves, show_types


def points(site, variances):
    return [
        TypePoint(site, f"token {number}", 0.01, tangent, normal, 1.0)
        for number, (tangent, normal) in enumerate(variances)
    ]


def test_lines_of_both_exponents_pass_through_the_middle_type():
    curves = TypeCurves("rows", "all", tuple(points("resid.0", [(1, 3), (2, 5), (8, 9)])), ())
    _, against = show_types([Exhibit("small", [], [curves])]).charts
    ends = {
        kind: [(r["tangent"], r["normal"]) for r in against.rows() if r["kind"] == kind]
        for kind in ("scale", "curvature")
    }
    assert ends == {"scale": [(1, 2.5), (8, 20)], "curvature": [(1, 1.25), (8, 80)]}


def test_a_site_whose_types_do_not_vary_has_no_lines():
    still, moving = points("resid.0", [(0, 0), (0, 0)]), points("resid.1", [(1, 2), (3, 4)])
    curves = TypeCurves("rows", "all", (*still, *moving), ())
    _, against = show_types([Exhibit("small", [], [curves])]).charts
    assert {row["site"] for row in against.rows()} == {"resid.1"}
    assert show_types([Exhibit("other", [])]) is None
