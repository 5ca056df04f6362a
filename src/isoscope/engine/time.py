"""How long something takes, for people to read."""


def as_time(seconds: float) -> str:
    """Return a time in one or two units.

    >>> as_time(6.2), as_time(100), as_time(7320)
    ('6 s', '1 min 40 s', '2 h 2 min')
    """
    whole = max(round(seconds), 0)
    minutes, rest = divmod(whole, 60)
    hours, left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {left} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
