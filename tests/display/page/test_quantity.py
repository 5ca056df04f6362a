"""Which measures are shown first."""

from isoscope.display.page.quantity import quantities


def test_twins_share_a_chart_and_the_usual_ones_come_first():
    found = quantities(["alpha", "isoscore-debiased", "isoscore", "mean-share"])
    assert [each.plain for each in found] == ["isoscore", "mean-share", "alpha"]
    assert found[0].forms == {"plain": "isoscore", "debiased": "isoscore-debiased"}
    assert found[1].forms == {"plain": "mean-share", "debiased": "mean-share"}
    assert found[2].title == "Alpha"


def test_a_measure_without_its_twin_has_a_chart_of_its_own():
    (one,) = quantities(["mean-cosine-cross"])
    assert (one.plain, one.debiased) == ("mean-cosine-cross", "")


def test_every_estimate_is_labelled():
    names = ["isoscore", "isoscore-debiased", "mean-cosine-cross", "effective-rank", "alpha"]
    found = quantities(names)
    assert [each.heading for each in found] == [
        "Mean cosine, debiased", "IsoScore, debiased", "Effective rank, plain", "Alpha",
    ]  # fmt: skip
    assert [each.labelled for each in found] == [
        {},
        {
            "plain": ("isoscore", "IsoScore, plain"),
            "debiased": ("isoscore-debiased", "IsoScore, debiased"),
        },
        {},
        {},
    ]
