"""The section of drift: points over initialisations, in front of closed forms as lines."""

SECTION = None


def draw_drift(run):
    return None
