"""stub"""

SECTION = None
