"""The spec of a trajectory: each checkpoint is surveyed as a survey of its own would be."""

from isoscope.lab.trajectory.spec import TrajectorySpec
from isoscope.study.survey import SurveySpec


def test_the_survey_of_a_checkpoint_has_all_options_of_the_series():
    spec = TrajectorySpec.of(series="runs/series", seed=3, tokens=500, sites="norm", length=9)
    wanted = SurveySpec.of(
        model="runs/series/step_1", seed=3, tokens=500, sites="norm", length=9
    )
    assert spec.survey_of("runs/series/step_1") == wanted
