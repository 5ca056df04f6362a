"""Changes in every format, letter by letter."""

import csv
import io
import json

import pytest

from isoscope.comparison.changes import changes_of
from isoscope.types import Change

KEYS = Change.__match_args__  # the names of its fields, in their order


def change(measure="isoscore", a=0.5, b=0.61, low=0.08, high=0.14, **other):
    fields = {
        "site": "embed", "other_site": "embed", "variant": "all", "step": None,
        "measure": measure, "a": a, "a_low": a - 0.05, "a_high": a + 0.05, "b": b,
        "b_low": b - 0.05, "b_high": b + 0.05, "difference": b - a, "low": low, "high": high,
        "paired": True, "chance": 0.001, "effect": (b - a) / b, "scale": max(a, b),
        "verdict": "changed", "warnings": (),
    }  # fmt: skip
    return Change(**{**fields, **other})


@pytest.fixture
def changes():
    return changes_of(
        [
            change(),
            change(
                "alpha", 1.5, 1.4, -0.3, 0.1, site="resid.0", other_site="resid.0",
                verdict="within noise", chance=0.6, warnings=("different widths: 8 and 16",),
            ),
            change(
                "twonn", 10.0, 11.0, None, None, site="resid.0", other_site="resid.0",
                verdict="no interval", chance=None, paired=False,
            ),
        ],
        runs=("old", "new"),
        method="paired by document group: both read the same 40 documents of texts",
        differs=["dtype float32 and bfloat16"],
        left_out=["only in a, or without a match: pooled"],
    )  # fmt: skip


MARKDOWN = """\
a: old, b: new, variant all

| site | measure | a | b | b - a | 95 % interval | effect, % | verdict | how | warnings |
| :-- | :-- | --: | --: | --: | --: | --: | :-- | :-- | :-- |
| embed | isoscore | 0.500 | 0.610 | 0.110 | [0.080, 0.140] | +18.03 | changed | paired |  |
| resid.0 | alpha | 1.500 | 1.400 | -0.10 | [-0.30, 0.10] | -7.14 | within noise | paired | 1 |
| resid.0 | twonn | 10.000 | 11.000 | 1.000 |  | +9.09 | no interval | independent |  |

1 changed, 1 within noise, 1 no interval of 3 (changed: p &lt; 0.05 after Holm's correction \
over 2 rows; the intervals are not corrected)

effect: b - a in % of the larger of a and b

paired by document group: both read the same 40 documents of texts

the runs differ in dtype float32 and bfloat16

1. different widths: 8 and 16

- skipped: only in a, or without a match: pooled
"""

LATEX = r"""% a: old, b: new, variant all
% needs \usepackage{booktabs}
\begin{tabular}{llrrrrrll}
\toprule
site & measure & a & b & b - a & 95 \% interval & effect, \% & verdict & how \\
\midrule
embed & isoscore & 0.500 & 0.610 & 0.110 & [0.080, 0.140] & +18.03 & changed & paired \\
resid.0 & alpha\textsuperscript{1} & 1.500 & 1.400 & $-0.10$ & [$-0.30$, 0.10] & $-7.14$ & within noise & paired \\
resid.0 & twonn & 10.000 & 11.000 & 1.000 &  & +9.09 & no interval & independent \\
\bottomrule
\end{tabular}

\smallskip
{\footnotesize
1 changed, 1 within noise, 1 no interval of 3 (changed: p \textless{} 0.05 after Holm{'}s correction over 2 rows; the intervals are not corrected)\par
effect: b - a in \% of the larger of a and b\par
paired by document group: both read the same 40 documents of texts\par
the runs differ in dtype float32 and bfloat16\par
\textsuperscript{1} different widths: 8 and 16\par
skipped: only in a, or without a match: pooled\par
}
"""  # noqa: E501


def test_markdown(changes):
    assert changes.to_markdown() == MARKDOWN


def test_latex(changes):
    assert changes.to_latex() == LATEX


def test_json(changes):
    lines = [json.loads(line) for line in changes.to_json().splitlines()]
    assert list(lines[0]) == ["run_a", "run_b", "negligible_below", *KEYS]
    assert lines[0] == {
        "run_a": "old", "run_b": "new", "negligible_below": 0.01, "site": "embed",
        "other_site": "embed", "variant": "all", "step": None, "measure": "isoscore", "a": 0.5,
        "a_low": 0.45, "a_high": 0.55, "b": 0.61, "b_low": 0.61 - 0.05, "b_high": 0.61 + 0.05,
        "difference": 0.61 - 0.5, "low": 0.08, "high": 0.14, "paired": True,
        "chance": 0.001, "effect": (0.61 - 0.5) / 0.61, "scale": 0.61, "verdict": "changed",
        "warnings": [],
    }  # fmt: skip
    assert lines[1]["warnings"] == ["different widths: 8 and 16"]
    assert lines[2]["low"] is None and lines[2]["chance"] is None


def test_csv(changes):
    head, first, second, _ = csv.reader(io.StringIO(changes.to_csv()))
    assert head == ["run_a", "run_b", "negligible_below", *KEYS]
    assert first[:8] == ["old", "new", "0.01", "embed", "embed", "all", "", "isoscore"]
    assert second[-1] == "different widths: 8 and 16"


def test_the_summary_says_what_negligible_means():
    small = changes_of([change(verdict="negligible"), change("alpha")], negligible=0.025)
    assert small.summary == (
        "1 changed, 1 negligible of 2 (changed: p < 0.05 after Holm's correction over 2 rows; "
        "negligible: so too, with the whole interval below 2.5 % of the scale; the intervals "
        "are not corrected)"
    )
    assert json.loads(small.to_json().splitlines()[0])["negligible_below"] == 0.025


def test_the_table_says_what_an_effect_is_a_share_of():
    cosine = change("mean-cosine", 0.3, 0.33, effect=0.03, scale=1.0)
    share = change("mean-share", 0.2, 0.25, effect=0.05, scale=1.0)
    points = "in % of 1, the range of the measure, that is in points"
    assert f"effect: b - a {points}" in str(changes_of([cosine, share]))
    mixed = str(changes_of([change("alpha"), cosine, share])).replace("\n", " ")
    assert (
        f"effect: b - a in % of the larger of a and b; for mean-cosine, mean-share {points}"
        in mixed
    )


def test_small_effects_keep_two_digits():
    shown = str(changes_of([change(effect=0.000123), change("alpha", effect=-1.5)]))
    assert " +0.012 " in shown and " -150.00 " in shown


def test_text_and_html_show_the_same_rows(changes):
    text, html = str(changes), changes._repr_html_()
    for word in ("isoscore", "within noise", "[-0.30, 0.10]", "paired by document group"):
        assert word in text and word in html
    assert repr(changes) == text


def test_what_all_rows_share_goes_into_the_caption():
    text = str(changes_of([change(), change("alpha")]))
    assert text.splitlines()[0] == "a: a, b: b, site embed, variant all"
    assert "independent" not in text and "how" not in text.splitlines()[2]


def test_what_is_no_number_is_null():
    (line,) = changes_of([change(b=float("nan"))]).to_json().splitlines()
    assert json.loads(line)["b"] is None


def test_hostile_names_are_shown_and_not_obeyed():
    name = "a\x1b[2J|<script>alert(1)</script>\n"
    hostile = changes_of([change(site=name), change()], runs=(name, "b"), left_out=[name])
    for text in (str(hostile), hostile.to_markdown(), hostile.to_csv(), hostile.to_latex()):
        assert "\x1b" not in text
    assert "<script" not in hostile.to_markdown() + hostile._repr_html_()
    assert len(hostile.to_markdown().splitlines()) == len(
        changes_of([change(site="c"), change()], runs=("c", "b"), left_out=["c"])
        .to_markdown()
        .splitlines()
    )


def test_no_changes_are_reported():
    none = changes_of([], left_out=["x"])
    assert "no readings" in str(none) and "skipped: x" in none.to_markdown()
