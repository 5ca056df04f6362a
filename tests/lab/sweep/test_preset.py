"""Known tasks: every one says its kind, its metric and its columns."""

import pytest

from isoscope.errors import UnknownNameError
from isoscope.lab.sweep.examples import PRESETS
from isoscope.lab.sweep.task import METRICS


def test_the_nine_tasks_of_the_paper_are_there():
    known = {"sst2", "sst5", "cola", "mrpc", "rte", "qnli", "qqp", "stsb", "squad"}
    assert set(PRESETS) == known


@pytest.mark.parametrize("name", list(PRESETS))
def test_each_is_judged_by_a_metric_of_its_kind(name):
    preset = PRESETS[name]
    assert METRICS[preset.metric].kind == preset.kind
    assert preset.columns


def test_a_name_that_is_not_known_is_reported_with_the_nearest():
    with pytest.raises(UnknownNameError, match="no task is called 'sst-2'") as caught:
        PRESETS["sst-2"]
    assert caught.value.hint == "did you mean 'sst2'?"
