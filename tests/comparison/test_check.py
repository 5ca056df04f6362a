"""check: rules that hold, are breached, are breached within noise, or cannot be checked."""

import pytest

import isoscope as iso
from isoscope.comparison.check import refuse
from isoscope.comparison.outcomes import worst
from isoscope.errors import ConfigError, GateError, IsoscopeError, UnknownNameError

ROWS = [
    ("embed", "mean-cosine", 0.2, 0.1, 0.3),
    ("norm.out", "mean-cosine", 0.6, 0.55, 0.65),
    ("norm.out", "isoscore", 0.5, 0.5, 0.5),
    ("pooled", "isoscore", 0.1, None, None),
]


def states(outcomes):
    return [(each.site, each.state) for each in outcomes]


def exit_code(outcomes):
    """Return the code that the command ends with."""
    try:
        refuse(outcomes)
    except IsoscopeError as error:
        return error.code
    return 0


@pytest.mark.parametrize(
    ("rule", "state", "code"),
    [
        ("mean-cosine@norm.out > 0.7", "holds", 0),
        ("mean-cosine@norm.out > 0.58", "warning", 0),
        ("mean-cosine@norm.out > 0.55", "warning", 0),  # the end itself is not beyond
        ("mean-cosine@norm.out >= 0.55", "breached", 1),
        ("mean-cosine@norm.out > 0.5", "breached", 1),
        ("mean-cosine@norm.out < 0.6", "holds", 0),
        ("mean-cosine@norm.out <= 0.6", "warning", 0),
        ("mean-cosine@norm.out < 0.7", "breached", 1),
        ("isoscore@norm.out > 0.5", "holds", 0),  # zero width
        ("isoscore@norm.out >= 0.5", "breached", 1),
        ("isoscore@norm.out < 0.500001", "breached", 1),
        ("isoscore@pooled > 0.05", "breached", 1),  # no interval: the value decides
        ("isoscore@pooled > 0.2", "holds", 0),
    ],
)
def test_the_interval_decides(handmade, rule, state, code):
    outcomes = iso.check(handmade("a", ROWS), rule)
    assert [each.state for each in outcomes] == [state]
    assert (worst(outcomes), exit_code(outcomes), outcomes.ok) == (state, code, code == 0)


def test_without_a_site_a_rule_is_about_every_site(handmade):
    outcomes = iso.check(handmade("a", ROWS), ["mean-cosine > 0.5", "isoscore@*o* < 0.01"])
    assert states(outcomes) == [
        ("embed", "holds"), ("norm.out", "breached"),
        ("norm.out", "holds"), ("pooled", "holds"),
    ]  # fmt: skip
    assert exit_code(outcomes) == 1
    assert outcomes.summary == "2 rules: 1 breached, 1 holds"


def test_another_variant_is_looked_at_only_where_it_is_named(handmade):
    run = handmade("a", [("embed", "mean-cosine", 0.9, 0.8, 1.0)], variant="no-sink")
    assert worst(iso.check(run, "mean-cosine@embed/no-sink > 0.5")) == "breached"
    outcomes = iso.check(run, "mean-cosine@embed > 0.5")
    assert worst(outcomes) == "could not run"
    assert outcomes[0].message == "the run has no mean-cosine at embed in variant all"


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("mean-cosine@norm.ot > 0.5", "no site is called 'norm.ot'; did you mean 'norm.out'?"),
        ("twonn > 5", "the run has no twonn in variant all"),
        ("isoscore@embed > 0.1", "the run has no isoscore at embed in variant all"),
    ],
)
def test_a_missing_reading_could_not_run(handmade, rule, problem):
    outcomes = iso.check(handmade("a", ROWS), ["isoscore > 0.9", rule])
    assert outcomes[-1].message == problem
    assert (worst(outcomes), exit_code(outcomes)) == ("could not run", 2)
    with pytest.raises(ConfigError, match=r"1 of 2 rules could not be") as caught:
        refuse(outcomes)
    assert caught.value.code == 2


def test_a_site_that_computed_nan_could_not_run(handmade):
    run = handmade("a", ROWS, trouble={"resid.7": "position 3 of document 'x'"})
    outcomes = iso.check(run, "mean-cosine > 0.9")
    assert exit_code(outcomes) == 2
    assert (
        outcomes[0].message == "resid.7 computed NaN or infinity at position 3 of document 'x'"
    )
    assert exit_code(iso.check(run, "mean-cosine@embed > 0.9")) == 0


def test_a_reading_that_is_no_number_could_not_run(handmade):
    from dataclasses import replace

    run = iso.load(handmade("a", ROWS))
    bad = [replace(run.readings[0], value=float("nan"))]
    outcomes = iso.check(replace(run, readings=bad), "mean-cosine@embed > 0.5")
    assert outcomes[0].message == "mean-cosine is nan at embed"
    assert exit_code(outcomes) == 2


def test_a_breach_counts_more_than_what_could_not_run(handmade):
    outcomes = iso.check(handmade("a", ROWS), ["twonn > 5", "mean-cosine > 0.5"])
    assert exit_code(outcomes) == 1
    with pytest.raises(GateError, match=r"is breached \(mean-cosine > 0\.5: norm") as caught:
        refuse(outcomes)
    assert caught.value.code == 1


def test_what_holds_is_not_refused(handmade):
    assert refuse(iso.check(handmade("a", ROWS), "mean-cosine > 0.58")) is None


# --- baselines ---------------------------------------------------------------------------


def test_a_multiple_of_the_baseline_is_judged_with_both_intervals(handmade):
    run = handmade("a", [("embed", "isoscore", 0.80, 0.79, 0.81)])
    base = handmade("b", [("embed", "isoscore", 1.00, 0.92, 1.08)])
    sure = iso.check(run, "isoscore < 0.95x", baseline=base)[0]
    assert (sure.state, sure.limit, sure.baseline) == ("breached", 0.95, 1.0)
    assert sure.margin == pytest.approx(-0.15)
    reach = (0.01**2 + (0.95 * 0.08) ** 2) ** 0.5
    assert sure.margin_high == pytest.approx(-0.15 + reach)
    assert iso.check(run, "isoscore < 0.85x", baseline=base)[0].state == "warning"
    assert iso.check(run, "isoscore < 0.7x", baseline=base)[0].state == "holds"
    assert "0.95 x 1" in sure.message


def test_runs_of_the_same_documents_are_paired(collections):
    run, base = collections("a", shift=0.63), collections("b")
    outcome = iso.check(run, "mean-cosine > 1x", baseline=base)[0]
    assert outcome.state == "breached"
    other = iso.check(run, "mean-cosine > 1x", baseline=collections("c", prefix="n"))[0]
    assert other.state in ("warning", "holds")
    assert outcome.margin_high - outcome.margin_low < 0.5 * (
        other.margin_high - other.margin_low
    )


def test_a_run_against_itself_is_exactly_the_same(collections):
    run = collections("a")
    assert worst(iso.check(run, ["isoscore < 1x", "isoscore > 1x"], baseline=run)) == "holds"
    assert worst(iso.check(run, "isoscore >= 1x", baseline=run)) == "breached"


def test_a_site_that_the_baseline_lacks_could_not_run(handmade):
    base = handmade("b", ROWS[:1])
    outcomes = iso.check(handmade("a", ROWS), "mean-cosine > 5x", baseline=base)
    assert states(outcomes) == [("embed", "holds"), ("norm.out", "could not run")]
    assert outcomes[1].message == "the baseline has no mean-cosine at norm.out"


# --- bad input ---------------------------------------------------------------------------


def test_x_needs_a_baseline(handmade):
    with pytest.raises(ConfigError, match=r"'isoscore < 0\.9x' needs a baseline") as caught:
        iso.check(handmade("a", ROWS), ["mean-cosine > 1", "isoscore < 0.9x"])
    assert caught.value.slug == "rule-baseline"


def test_a_check_needs_a_rule(handmade):
    with pytest.raises(ConfigError, match="at least 1 rule, got 0"):
        iso.check(handmade("a", ROWS), [])


def test_an_unknown_measure_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(UnknownNameError, match="no measure is called 'isoscor'"):
        iso.check(tmp_path / "nothing", "isoscor > 1")


def test_a_measure_that_was_not_read_comes_from_the_summaries(collections):
    run = collections("a", measures=["mean-cosine"])
    assert worst(iso.check(run, "mean-cosine-cross > 2")) == "holds"


def test_hundreds_of_layers_are_checked_and_the_table_stays_short(handmade):
    rows = [(f"resid.{layer}", "isoscore", 0.5, 0.4, 0.6) for layer in range(400)]
    outcomes = iso.check(handmade("a", rows), "isoscore > 0.1")
    assert len(outcomes) == 400
    lines = str(outcomes).splitlines()
    assert len(lines) < 30 and "380 more sites" in lines[-1]
