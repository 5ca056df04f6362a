"""Three sentences with numbers, and the rules that produced them."""

from dataclasses import replace

import numpy as np

from isoscope.display.page.section import Exhibit
from isoscope.display.section.verdict import findings, output_site, show
from isoscope.types import CauseShare, CauseShares, DimensionScores, Reading, SinkShare


def test_three_sentences_are_about_the_output(demo):
    alike, shared, sinks = findings(demo)
    reading = demo.reading("mean-cosine-cross", "norm.out")
    assert alike.figure == f"{reading.value:.3f} ± {(reading.high - reading.low) / 2:.3f}"
    assert "two unrelated tokens" in alike.text and "norm.out" in alike.text
    assert alike.rule.startswith("mean-cosine-cross at norm.out, variant all")
    assert shared.figure == f"{100 * demo.reading('mean-share', 'norm.out').value:.0f} %"
    assert sinks.figure == "97 %"
    assert "one token per document" in sinks.text
    assert sinks.text.endswith("in blocks 1 to 2")


def test_sinks_are_known_by_their_norm_and_called_so():
    reading = Reading("a", "resid.1", "all", "", None, "alpha", 0.5, None, None, 900, 24)
    curve = SinkShare("resid.1", "all", share=0.97, rows=30, n=900, documents=30)
    (finding,) = findings(Exhibit("a", [reading], [curve]))
    assert finding.text.startswith("or more of the variance comes from norm sinks, one token")
    assert "attention" not in finding.text + finding.rule


def test_a_model_that_pools_is_judged_by_its_pooled_vectors():
    made = {"run": "a", "variant": "all", "group": "", "step": None, "n": 90, "d": 3}
    ends = {"measure": "mean-cosine-cross", "low": None, "high": None}
    values = (("embed", 0.1), ("resid.0", 0.2), ("norm.out", 0.3), ("pooled", 0.4))
    readings = [Reading(site=site, value=value, **made, **ends) for site, value in values]
    assert output_site(Exhibit("a", readings)) == "pooled"
    assert findings(Exhibit("a", readings))[0].figure == "0.40"
    assert output_site(Exhibit("a", readings[:3])) == "norm.out"


def test_without_sinks_the_third_is_about_dimensions(demo):
    quiet = replace(demo, curves=[c for c in demo.curves if not isinstance(c, SinkShare)])
    assert findings(quiet)[2].figure == f"{1.3 * 24:.0f}"


def test_an_interval_keeps_a_digit_however_narrow(demo):
    each = replace(
        demo.reading("mean-cosine-cross", "norm.out"), value=0.36, low=0.3596, high=0.3604
    )
    narrow = replace(demo, readings=[each])
    assert findings(narrow)[0].figure == "0.3600 ± 0.0004"


def test_vectors_are_spoken_of_as_vectors():
    one = Reading("a", "rows", "all", "", None, "mean-cosine", 0.5, None, None, 9, 3)
    (only,) = findings(Exhibit("a", [one], noun="vectors"))
    assert only.figure == "0.50"
    assert "two different vectors here" in only.text


def test_a_run_without_the_usual_measures_says_what_it_has():
    one = Reading("a", "rows", "all", "", None, "alpha", 0.5, None, None, 9, 3)
    assert "this run has alpha" in show([Exhibit("a", [one])]).body
    assert "no readings" in show([Exhibit("a", [])]).body


def test_facts_and_remarks_are_escaped(demo):
    body = show([replace(demo, facts={"Model": "<b>"}, remarks=["<i>"])]).body
    assert "&lt;b&gt;" in body and "&lt;i&gt;" in body


def test_the_output_is_the_last_norm(demo):
    assert output_site(demo) == "norm.out"
    assert output_site(Exhibit("a", [])) is None


def test_a_sentence_model_is_judged_by_its_pooled_vectors(demo):
    pooled = [
        replace(each, site="pooled", value=each.value / 2, low=None, high=None)
        for each in demo.readings
        if each.site == "norm.out" and each.variant == "all"
    ]
    both = replace(demo, readings=[*demo.readings, *pooled], curves=[])
    assert output_site(both) == "pooled"
    found = findings(both)
    assert [each.rule.split(" at ")[1].split(",")[0] for each in found] == ["pooled"] * 3
    cosine = demo.reading("mean-cosine-cross", "norm.out").value
    assert found[0].figure == f"{cosine / 2:.2f}"
    assert "two unrelated texts at the output, pooled" in found[0].text
    assert "of the squared length of texts" in found[1].text


def test_a_biased_number_is_called_so(demo):
    bias = "still biased low, by 26 or more: too few rows for its spectrum"
    readings = [
        replace(each, warnings=(bias,)) if each.measure == "effective-rank-debiased" else each
        for each in demo.readings
    ]
    rank = findings(replace(demo, readings=readings, curves=[]))[2]
    assert rank.figure == f"{1.3 * 24:.0f} or more"
    assert rank.rule.endswith(f"; {bias}")


def test_a_tiny_number_is_short_and_never_zero_of_zero():
    each = Reading("a", "rows", "all", "", None, "mean-cosine", -7e-5, -7.1e-5, -6.9e-5, 9, 3)
    (only,) = findings(Exhibit("a", [each], noun="vectors"))
    assert only.figure == "-7.0e-05 ± 1e-06"
    assert len(only.figure) <= 16


def collection(*curves):
    values = {"mean-cosine": 0.4, "mean-share": 0.41, "effective-rank-debiased": 12.0}
    readings = [
        Reading("a", "rows", "all", "", None, name, value, None, None, 900, 64)
        for name, value in values.items()
    ]
    return Exhibit("a", readings, list(curves), noun="vectors")


def test_the_verdict_of_a_collection_names_causes_and_dimensions_by_number():
    names = "41 (81%), 7 (19%); zeroed, the mean cosine is -0.000"
    cause = CauseShare("dimensions", 0.998, 0.99, 1.0, names, named=True, falls_to=-0.0003)
    alike, shared, carried, rank = findings(
        collection(CauseShares("rows", "all", cosine=0.4, causes=(cause,)))
    )
    assert (alike.figure, shared.figure, rank.figure) == ("0.40", "41 %", "12")
    assert carried.figure == "100 %"
    assert carried.text == (
        "of the mean cosine is carried by dimensions 41 (81%), 7 (19%); without them it falls "
        "to 0.00"
    )
    assert carried.rule == "causes by removal at rows, 95 % interval 99 to 100 %"


def test_dimensions_that_stand_out_are_named_where_they_carry_no_cosine():
    score = np.array([1.0, 60.0, 8.0])
    scores = DimensionScores("rows", "all", np.arange(3), np.arange(1, 4), np.arange(3), score)
    *_, outlier, _ = findings(collection(scores))
    assert outlier.figure == "60"
    assert outlier.text == (
        "times the average is the mean square of dimensions 1, 2 or less, in this order"
    )
