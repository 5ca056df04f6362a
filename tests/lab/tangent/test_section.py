"""Tables and the page of gradients: verdicts, sentences, concepts."""

import pytest

from isoscope.display import READINGS, Results
from isoscope.display.page.section import Exhibit
from isoscope.lab.tangent.concepts import concepts_of_run
from isoscope.lab.tangent.results import (
    ABOVE,
    BELOW,
    NEITHER,
    sentence,
    tangent_results,
    verdict,
)
from isoscope.lab.tangent.section import draw_tangent, show
from isoscope.store import load
from isoscope.types import Reading


def ratio(value, low, high, group="shuffled", site="grad.0", step=None):
    names = ("tangent-energy-ratio", value, low, high)
    return Reading("run", site, "all", group, step, *names, 100, 16)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [((1.1, 1.5), ABOVE), ((0.5, 0.9), BELOW), ((0.9, 1.1), NEITHER), ((None, None), NEITHER)],
)
def test_a_verdict_includes_the_interval(ends, expected):
    assert verdict(ratio(1.2, *ends)) == expected


def test_the_sentence_counts_every_control():
    found = [
        ratio(1.5, 1.2, 1.8),
        ratio(0.8, 0.7, 0.9, site="grad.1"),
        ratio(3, 2, 4, "random"),
    ]
    said = sentence(found)
    assert "random 1 above and 0 below 1 of 1" in said
    assert "shuffled 1 above and 1 below 1 of 2 (median 1.150)" in said
    assert sentence([]) == ""
    results = tangent_results(Results(found, READINGS))
    assert said in results.remarks
    steps = tangent_results(Results([ratio(1.5, 1.2, 1.8, step=s) for s in (0, 9)], READINGS))
    assert "2 checkpoints, step 0 to 9" in str(steps)


def test_a_run_is_drawn_with_its_concepts(followed_model):
    run = load(followed_model)
    (step,) = concepts_of_run(run)
    assert step is None
    drawn = draw_tangent(run)
    assert {each.site for each in drawn.curves} == {"grad.1"}
    assert drawn.findings[0].text.startswith("readings have more gradient energy")
    panel = show([Exhibit("run", run.readings, drawn.curves)])
    assert [each.name for each in panel.charts] == [
        "tangent-ratio", "tangent-rise", "tangent-bands", "tangent-rise-bands",
    ]  # fmt: skip
    assert "Concepts of grad.1" in panel.body
    assert show([Exhibit("other", [])]) is None


def test_words_of_documents_are_escaped(followed_model):
    run = load(followed_model)
    drawn = draw_tangent(run)
    assert drawn.curves[0].top
    hostile = [
        type(each)(each.site, each.variant, each.step, each.direction, each.variance,
                   (("<script>alert(1)</script>", "<img src=x>"),), ())
        for each in drawn.curves
    ]  # fmt: skip
    panel = show([Exhibit("<b>run</b>", run.readings, hostile)])
    assert "<script>alert" not in panel.body
    assert "<img" not in panel.body
    assert "<b>run" not in panel.body
