"""Numbers as text, with as many digits as their interval supports."""

from math import floor, isfinite, log10

SMALL, LARGE = 1e-4, 1e6  # beyond these, scientific notation reads better
WITHOUT_INTERVAL = 4  # significant digits
MOST = 7  # significant digits, however narrow the interval


def format_value(value: float, low: float | None, high: float | None) -> tuple[str, str]:
    """Value and interval as text, with two digits of the interval's half-width.

    >>> format_value(0.463123, 0.46102, 0.46523)
    ('0.4631', '[0.4610, 0.4652]')
    >>> format_value(0.463123, None, None)
    ('0.4631', '')
    """
    ends = () if low is None or high is None else (low, high)
    numbers = (value, *ends)
    top = max(abs(number) for number in numbers)
    places = _places(top, abs(ends[1] - ends[0]) / 2 if ends else 0.0)
    scientific = top >= LARGE or 0 < top < SMALL
    texts = [_scientific(n, places) if scientific else _fixed_point(n, places) for n in numbers]
    return texts[0], f"[{texts[1]}, {texts[2]}]" if ends else ""


def short(value: float | None) -> str:
    """A number without an interval, such as the value of an isotropic cloud."""
    return "" if value is None or not isfinite(value) else f"{value + 0.0:.4g}"


def count(number: int) -> str:
    """A count with commas between thousands."""
    return f"{number:,}"


def _places(top: float, half: float) -> int:
    """Decimal places, negative where the last digits before the point are noise."""
    most = MOST - 1 - _order(top)
    if half == 0:
        return min(WITHOUT_INTERVAL - 1 - _order(top), most)
    return min(1 - _order(half), most)


def _order(number: float) -> int:
    return floor(log10(number)) if number > 0 and isfinite(number) else 0


def _fixed_point(number: float, places: int) -> str:
    text = f"{number:.{max(places, 0)}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _scientific(number: float, places: int) -> str:
    if number == 0:
        return "0"
    return f"{number:.{max(_order(abs(number)) + places, 0)}e}"
