"""Tables of norms: lines, names and what each step adds."""

from types import SimpleNamespace

import pytest

from isoscope.display.formats import as_text
from isoscope.lab.norm.results import final_table, gain_table, outlier_table, step_table


def final(**given):
    plain = dict(
        site="norm", module="ln_f", kind="LayerNorm", gain_norm=5.0, bias_norm=2.5, ratio=0.5,
        reference=0.2, width=1024, gain_outliers=[3], bias_outliers=[3, 7], remark="mind",
    )  # fmt: skip
    return SimpleNamespace(**(plain | given))


def step(measure, *values):
    return SimpleNamespace(
        measure=measure, **dict(zip(("before", "between", "after"), values, strict=True))
    )


def through(steps=(), **gained):
    told = SimpleNamespace(n=2048, **gained) if gained else None
    return SimpleNamespace(
        site="norm", variant="all", steps=list(steps), reference=0.2, gained=told
    )


def cells(table, head):
    return next(column.cells for column in table.columns if column.head == head)


def test_a_norm_without_bias_has_dashes_and_its_remark():
    table = final_table(
        "m\x1b[2J", [final(bias_norm=None, ratio=None, reference=None, remark="no bias")]
    )
    assert table.caption == "model m\\x1b[2J, final norm"
    assert [cells(table, head) for head in ("|bias|", "r", "r²/(1+r²)")] == [("–",)] * 3
    assert table.warnings == ("no bias",)


def test_the_remark_of_two_norms_is_reported_once():
    table = final_table("m", [final(site="enc.norm"), final(site="dec.norm")])
    assert table.warnings == ("mind",)
    assert cells(table, "r²/(1+r²)") == ("0.2", "0.2")


def test_outliers_are_named_with_the_number_of_layers_where_it_is_not_all():
    role = SimpleNamespace(
        stack="enc.", role="ln_1", layers=6, common_gain={3: 6, 5: 4}, common_bias={5: 5}
    )
    table = outlier_table([final(gain_outliers=list(range(9)))], [role], 3.0)
    assert cells(table, "norms") == ("enc.ln_1", "norm (final)")
    assert cells(table, "gain") == ("3, 5 (4)", "0, 1, 2, 3, 4 and 4 more")
    assert cells(table, "bias") == ("5 (5)", "3, 7")
    assert cells(table, "both") == ("5", "3, 7")
    assert "beyond 3 sigma" in table.caption


def test_what_each_step_adds_is_a_difference():
    steps = [step("mean-cosine", 0.1, 0.3, 0.25), step("odd", 1.0, None, 2.0)]
    table = step_table(through(steps))
    assert cells(table, "measure") == ("mean-cosine",)  # the usual ones
    assert cells(table, "normalising") == ("+0.2",)
    assert cells(table, "gain, bias") == ("-0.05",)
    named = step_table(through(steps), ["odd"])
    assert cells(named, "between") == ("–",) and cells(named, "normalising") == ("",)


@pytest.mark.parametrize("bias", [True, False])
def test_gain_and_bias_add_one_after_the_other(bias):
    told = through(
        normalised=0.1, gain=0.15, gain_and_bias=0.4 if bias else 0.15,
        centred_gain_and_bias=0.3, zero_mean=0.25 if bias else None,
    )  # fmt: skip
    table = gain_table(told, told.gained)
    assert cells(table, "adds")[:2] == ("", "+0.05")
    assert len(table.rows) == (6 if bias else 2)
    if bias:
        assert cells(table, "adds")[2] == "+0.25"
        assert cells(table, "mean cosine")[-2:] == ("0.25", "0.2")
    assert "2,048 normalised rows" in as_text(table)
