"""The options of work on a series of checkpoints."""

import pytest

from isoscope.lab.attention.spec import AttentionSpec
from isoscope.lab.trajectory.spec import TrajectorySpec
from isoscope.study.series_spec import SeriesLoadSpec


@pytest.mark.parametrize("kind", [TrajectorySpec, AttentionSpec])
def test_a_run_is_resumed_with_and_without_broken_checkpoints(kind):
    names = ("series",) if kind is TrajectorySpec else ("model",)
    given = dict.fromkeys(names, "steps")
    plain, skipping = kind.of(**given), kind.of(**given, skip_broken=True, free=True)
    assert plain.load.skip_broken is False and skipping.load.free is True
    assert plain.resolve({}) == skipping.resolve({})
    assert plain.resolve({}) != kind.of(**given, dtype="bfloat16").resolve({})


def test_a_checkpoint_is_loaded_as_the_series_says():
    load = SeriesLoadSpec(dtype="bfloat16", device="cpu", revisions=("step0",))
    found = load.checkpoint("steps/step_3")
    assert (found.model, found.dtype, found.device) == ("steps/step_3", "bfloat16", "cpu")
