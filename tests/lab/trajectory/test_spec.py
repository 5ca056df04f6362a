"""The spec of a trajectory: each checkpoint is surveyed as a survey of its own would be."""

from isoscope.lab.trajectory.spec import TrajectorySpec
from isoscope.study.experiment import find_experiment
from isoscope.study.survey import SurveySpec


def test_the_survey_of_a_checkpoint_has_all_options_of_the_series():
    spec = TrajectorySpec.of(series="runs/series", seed=3, tokens=500, sites="norm", length=9)
    wanted = SurveySpec.of(
        model="runs/series/step_1", seed=3, tokens=500, sites="norm", length=9
    )
    assert spec.survey_of("runs/series/step_1") == wanted


def test_freed_memory_is_kept_as_in_a_survey_or_every_pass_would_clear_its_pages_anew():
    assert find_experiment("trajectory").blocks == find_experiment("survey").blocks != ()
