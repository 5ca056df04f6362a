"""Task against isotropy: dots, means, differences, and what the verdict says."""

import re
from pathlib import Path

import pytest

from isoscope.display.page.section import Exhibit
from isoscope.display.section.verdict import findings as verdict
from isoscope.lab.sweep.results import grid_of
from isoscope.lab.sweep.section import findings, show
from isoscope.site import is_layer
from isoscope.store import load
from isoscope.types import SweepCell, SweepGrid, SweepWeight

OLD = Path(__file__).parents[2] / "store" / "schema1"
SEEDS = (0, 1)
METRIC = {-3.0: (0.5, 0.6), 0.0: (0.8, 0.84), 3.0: (0.82, 0.9)}
GEOMETRY = {-3.0: 0.05, 0.0: 0.2, 3.0: 0.5}


NONE = (None, None, None)


def made(
    name="sst2", learnt=True, sd=(0.07, 0.028, 0.057), value=(-0.27, None, 0.04),
    low=(-0.5, None, -0.2), high=(-0.1, None, 0.3), p=(0.02, None, 0.4), task="sst2",
):  # fmt: skip
    columns = ((-3.0, 0.0, 3.0), (0.55, 0.82, 0.86), sd, (2, 2, 2), value, low, high, p)
    cells = [
        SweepCell(measure, site, w, s, GEOMETRY[w] + 0.01 * s + shift, METRIC[w][s])
        for measure, shift in (("isoscore-star", 0.1), ("isoscore-debiased", 0.0))
        for site in ("layers", "resid.0", "resid.1", "resid")
        for w in METRIC
        for s in SEEDS
    ]
    cells += [
        SweepCell(measure, site, 0.0, None, 0.22, None)
        for measure in ("isoscore-star", "isoscore-debiased")
        for site in ("layers", "resid.0", "resid.1", "resid")
    ]
    grid = SweepGrid(
        "task", "all", task, "accuracy", "istar", 0.51, learnt,
        tuple(SweepWeight(*row) for row in zip(*columns, strict=True)), tuple(cells),
    )  # fmt: skip
    return Exhibit(name, [], [grid], findings=findings(grid))


def test_seeds_are_dots_and_means_have_their_weight_as_label():
    cells, _ = show([made()]).charts
    rows = cells.rows(measure="isoscore-debiased", site="resid")
    dots = [(r["weight"], r["seed"], r["metric"]) for r in rows if r["kind"] == "seed"]
    assert dots == [(w, s, METRIC[w][s]) for w in METRIC for s in SEEDS]
    means = {r["label"]: r for r in rows if r["kind"] == "mean"}
    assert list(means) == ["-3", "0", "3"]
    assert means["3"]["metric"] == pytest.approx(0.86)
    assert means["3"]["geometry"] == pytest.approx(0.505)
    (before,) = [r for r in rows if r["kind"] == "before"]
    assert before["geometry"] == 0.22 and before["metric"] is None


def test_switches_choose_measure_and_layer_and_begin_with_the_mean_over_layers():
    panel = show([made()])
    assert panel.positions == {"measure": "isoscore-debiased", "site": "layers"}
    layer = next(switch for switch in panel.switches if switch.name == "site")
    assert [title for _, title in layer.choices] == [
        "mean over layers", "all layers as one cloud", "resid.0", "resid.1",
    ]  # fmt: skip
    star, debiased = (
        panel.charts[0].rows(measure=name, site="resid.0")
        for name in ("isoscore-star", "isoscore-debiased")
    )
    assert [r["geometry"] for r in star] != [r["geometry"] for r in debiased]


def test_differences_leave_weight_0_out_and_keep_its_interval():
    _, apart = show([made()]).charts
    rows = apart.rows()
    assert [(r["weight"], r["value"], r["low"], r["high"]) for r in rows] == [
        (-3.0, -0.27, -0.5, -0.1),
        (3.0, 0.04, -0.2, 0.3),
    ]


def test_two_sweeps_get_a_switch_and_a_line_each():
    panel = show([made("a"), made("b")])
    assert panel.positions["run"] == "a"
    assert {r["run"] for r in panel.charts[0].rows(run="b")} == {"b"}
    assert panel.lead[-1].startswith("b: sst2 with the penalty istar")
    assert panel.body.count("<tr>") == 1 + 6 + 1 + 2 * 4  # weights, and their geometry


def test_a_run_that_is_no_sweep_has_no_such_section(demo):
    assert show([demo]) is None
    assert show([demo, made()]) is not None


def test_the_verdict_is_about_the_task_the_best_weight_and_the_geometry():
    without, best, moved = verdict(made())
    assert without.figure == "0.820 ± 0.028" and "knowing nothing gives 0.51" in without.text
    assert best.figure == "+0.040" and "seeds alone may do" in best.text
    assert "p = 0.4 after Holm" in best.rule
    assert moved.figure == "0.055 to 0.51" and "0.22 before fine-tuning" in moved.text
    assert "the debiased IsoScore, the mean over layers" in moved.text


def test_the_page_names_what_the_table_of_the_command_line_names():
    panel = show([made()])
    assert "geometry of held-out texts, mean over layers and seeds" in panel.body
    heads = re.findall(r"<th [^>]*>([^<]*)</th>", panel.body)
    assert heads[:2] == ["weight", "accuracy"]
    assert heads[-3:] == ["weight", "isoscore-debiased", "isoscore-star"]
    cells = panel.charts[0]
    assert cells.title == "Accuracy against isotropy"
    (name,) = {r["label"] for r in cells.rows(site="layers") if r["kind"] == "before"} - {
        "IsoScore* of held-out texts, mean over layers"
    }
    assert name == "IsoScore, debiased of held-out texts, mean over layers"


def test_a_run_on_disk_has_the_mean_over_its_layers():
    grid = grid_of(load(OLD / "sweep"))
    layers = [each for each in grid.cells if each.site == "layers"]
    assert layers
    for each in layers:
        here = (each.measure, each.weight, each.seed)
        own = [
            other.geometry
            for other in grid.cells
            if (other.measure, other.weight, other.seed) == here and is_layer(other.site)
        ]
        assert each.geometry == pytest.approx(sum(own) / len(own))


@pytest.mark.parametrize(
    ("p", "value", "says"),
    [(0.01, 0.04, "more than seeds alone would"), (0.01, -0.04, "all of them do harm")],
)
def test_a_difference_that_is_sure_is_reported_as(p, value, says):
    found = made(p=[0.01, None, p], value=[-0.27, None, value])
    assert says in found.findings[1].text


def test_a_task_that_was_not_learnt_is_marked_in_lead_and_verdict():
    panel = show([made(learnt=False)])
    assert "not learnt" in panel.lead[-1]
    found = made(learnt=False).findings
    assert "not learnt" in found[0].text
    assert not any("best of" in each.text for each in found)  # it would say nothing
    assert "one seed cannot tell" in made(learnt=None).findings[0].text


def test_one_seed_has_no_interval_and_no_chance():
    found = made(sd=NONE, low=NONE, high=NONE, p=NONE)
    without, best = found.findings[:2]
    assert (
        without.figure == "0.820"
        and best.rule == "no interval: one seed, or the same difference with each"
    )
    assert "95 % interval" not in show([found]).body


def test_hostile_names_are_escaped():
    task = "<img src=x>\x1b[2J"
    panel = show([made("<b>a</b>", task=task).printable, made("b").printable])
    assert "<b>" not in panel.body and "<img" not in panel.body
    assert "\x1b" not in "".join(panel.lead)
