"""The loop, and the survey it returns."""

from isoscope.survey.read import SECOND_PASS, kinds_for
from isoscope.survey.run import block_rows, run
from isoscope.survey.survey import Survey

__all__ = ["SECOND_PASS", "Survey", "block_rows", "kinds_for", "run"]
