"""The loop, and the survey it returns."""

from isoscope.survey.run import block_rows, run
from isoscope.survey.survey import SECOND_PASS, Survey, kinds_for

__all__ = ["SECOND_PASS", "Survey", "block_rows", "kinds_for", "run"]
