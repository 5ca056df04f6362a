"""isoscope tangent of a series: one proxy of its early checkpoints, or each its own."""

from dataclasses import replace

import pytest

import isoscope as iso
from isoscope.lab.tangent.series import early_steps
from isoscope.study.series import Checkpoint

OPTIONS = {"rank": 3, "controls": 20, "threads": 1, "sites": ["grad.1"], "batch": 8}


@pytest.fixture(scope="module")
def steps(checkpoints):
    return [str(checkpoints / f"step_{step}") for step in (0, 30, 110)]


@pytest.fixture(scope="module")
def followed(steps, corpus, tmp_path_factory):
    path = tmp_path_factory.mktemp("followed") / "run"
    return path, iso.tangent(steps, corpus, output=path, **OPTIONS)


def test_each_step_with_its_own_proxy_reads_as_a_run_of_its_own(steps, corpus):
    found = iso.tangent(steps, corpus, fit="each", **OPTIONS)
    alone = iso.tangent(steps[1], corpus, **OPTIONS)
    step = [
        replace(each, run="", step=None)
        for each in found
        if each.step == 30 and each.measure != "tangent-angle"
    ]
    assert step == [replace(each, run="") for each in alone]
    angles = [each for each in found if each.measure == "tangent-angle"]
    assert {each.step for each in angles} == {30, 110}
    assert all(0 < each.value <= 90 for each in angles)


def test_one_proxy_of_the_early_steps_is_kept(followed):
    path, found = followed
    assert {each.step for each in found} == {0, 30, 110}
    assert iso.read(path).to_dict() == found.to_dict()
    # the proxy is of steps 0 and 30: at step 30 it is compared with the activations of step 0
    angles = {
        (each.step, each.group): each.value for each in found if each.measure == "tangent-angle"
    }
    assert len(angles) == 6
    assert "3 checkpoints, step 0 to 110" in str(found)


def test_a_series_has_its_page(followed, tmp_path):
    iso.report(followed[0], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "Energy ratio over training" in text
    assert "step 110: grad.1" in text


def test_early_steps_are_a_share_of_training():
    units = [Checkpoint(step, str(step), str(step)) for step in (0, 1, 100, 300, 301, 1000)]
    assert [each.step for each in early_steps(units, 0.3)] == [0, 1, 100, 300]
    many = [Checkpoint(step, str(step), str(step)) for step in range(101)]
    found = [each.step for each in early_steps(many, 0.3)]
    assert len(found) == 8 and found[0] == 0 and found[-1] == 30
    assert [each.step for each in early_steps(units[-1:], 0.3)] == [1000]
