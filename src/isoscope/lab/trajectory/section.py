"""The section of a trajectory (to be filled)."""

from isoscope.display.page.section import Drawn, Section

SECTION = Section("trajectory", "Trajectory", lambda _: None, first=True)


def draw_trajectory(run):
    return Drawn()
