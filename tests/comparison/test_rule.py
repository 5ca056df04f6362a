"""Rules: what they mean, and what is said of those that mean nothing."""

import pytest

from isoscope.comparison.rule import parse_rule
from isoscope.errors import ConfigError, UnknownNameError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mean-cosine > 0.5", ("mean-cosine", "*", "all", ">", 0.5, False)),
        ("mean-cosine@norm.out>0.5", ("mean-cosine", "norm.out", "all", ">", 0.5, False)),
        ("  isoscore  <=  0.9x ", ("isoscore", "*", "all", "<=", 0.9, True)),
        (
            "isoscore@resid.*/no-sink < 1e-3",
            ("isoscore", "resid.*", "no-sink", "<", 1e-3, False),
        ),
        ("isoscore/no-special >= -1", ("isoscore", "*", "no-special", ">=", -1.0, False)),
        ("partition-log < -2", ("partition-log", "*", "all", "<", -2.0, False)),
        ("twonn @ embed > 1.1x", ("twonn", "embed", "all", ">", 1.1, True)),
    ],
)
def test_a_rule_is_read(text, expected):
    rule = parse_rule(text)
    found = (rule.measure, rule.site, rule.variant, rule.sign, rule.number, rule.relative)
    assert found == expected
    assert rule.text == text.strip()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected one comparison in the rule '', got none"),
        ("mean-cosine 0.5", "expected one comparison"),
        ("0.1 < mean-cosine < 0.5", "expected one comparison .* got '<' and '<'"),
        ("mean-cosine => 0.5", "expected >, >=, < or <= .* got '=>'"),
        ("mean-cosine == 0.5", "expected >, >=, < or <= .* got '=='"),
        ("mean-cosine != 0.5", "got '!='"),
        ("> 0.5", "expected a measure before '>'"),
        ("mean-cosine@ > 0.5", "expected a site after '@'"),
        ("mean-cosine > ", "expected a number after the sign in .* got ''"),
        ("mean-cosine > half", "expected a number .* got 'half'"),
        ("mean-cosine > nan", "expected a number .* got 'nan'"),
        ("mean-cosine > inf", "expected a number .* got 'inf'"),
        ("mean-cosine > 1_000", "expected a number"),
        ("mean-cosine > 0.5xx", "expected a number .* got '0.5xx'"),
        ("mean-cosine > x", "expected a number .* got 'x'"),
        ("mean-cosine < -0.5x", "expected more than 0 times the baseline"),
        ("mean-cosine < 0x", "expected more than 0 times the baseline"),
    ],
)
def test_what_is_no_rule_is_one_clear_error(text, problem):
    with pytest.raises(ConfigError, match=problem) as caught:
        parse_rule(text)
    assert caught.value.slug in ("rule-unreadable", "rule-number")
    assert "0.9x" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("mean-cosin > 0.5", "did you mean 'mean-cosine'?"),
        ("partition-lag > 0.5", "did you mean 'partition-log'?"),
        ("isoscore@embed/no-sinks < 1", "did you mean 'no-sink'?"),
    ],
)
def test_an_unknown_name_gets_the_nearest(text, hint):
    with pytest.raises(UnknownNameError) as caught:
        parse_rule(text)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("sign", "margins"),
    [(">", [1]), (">=", [0, 1]), ("<", [-1]), ("<=", [-1, 0])],
)
def test_a_margin_is_beyond_on_the_side_of_the_sign(sign, margins):
    rule = parse_rule(f"isoscore {sign} 0.5")
    assert [margin for margin in (-1, 0, 1) if rule.beyond(margin)] == margins


def test_a_site_may_be_a_pattern():
    rule = parse_rule("isoscore@resid.1* > 0")
    covered = [s for s in ("resid.1", "resid.12", "resid.2", "embed") if rule.covers(s)]
    assert covered == ["resid.1", "resid.12"]
