"""How anisotropy develops: a survey of every checkpoint of a series, and what changes when."""

from isoscope.study.experiment import Experiment, add

add(
    Experiment(
        "trajectory",
        """Survey every checkpoint of SERIES and print what changes when.

        All checkpoints read the same documents, so that differences between steps are paired by
        document. One line per measure and site: the first and the last step, their difference
        with its interval, the step from which on it differs (onset) and where it leaves a
        smooth trend (sudden). With -o an unfinished run is resumed; isoscope report draws it.
        """,
        spec_at="isoscope.lab.trajectory.spec:TrajectorySpec",
        examples=(
            "isoscope trajectory models/series --tokens 2000 -o runs/series",
            "isoscope trajectory models/series --metrics steps.csv --sites norm --json",
            "isoscope trajectory models/series --tokens 500 --sites norm --csv",
        ),
        noun="tokens",
        first="loading model",
        blocks=(16_000_000, 24_000_000),  # as those of a survey
        section_at="isoscope.lab.trajectory.section:SECTION",
        exhibit_at="isoscope.lab.trajectory.curves:draw_trajectory",
    ),
)
