"""Which comes first in training, drift or sharpness: half-way steps of every head."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from isoscope.dataclass import dataclass
from isoscope.site import HEAD, Site
from isoscope.types import Reading

EARLY = "before-rotation"  # rotation averages means away, so that they are read before it
DRIFT, SHARPNESS = "query-key-dot", "attention-entropy"
BEFORE, AFTER, TOGETHER = "before", "after", "together"


@dataclass(frozen=True)
class HeadOrder:
    """When the drift and the sharpness of a head have reached half of their change."""

    site: str
    drift: int  # steps
    sharpness: int

    @property
    def drift_comes(self) -> str:
        """Whether the drift comes before sharpness, after it, or at the same checkpoint."""
        if self.drift == self.sharpness:
            return TOGETHER
        return BEFORE if self.drift < self.sharpness else AFTER


@dataclass(frozen=True)
class Orders:
    """The heads that change in both ways, and how many do not."""

    heads: tuple[HeadOrder, ...]
    others: int  # heads of which one of the two does not change surely

    @property
    def sentence(self) -> str:
        """What is found, for people to read; empty without heads."""
        if not self.heads:
            return ""
        count = Counter(each.drift_comes for each in self.heads)
        rest = f"; {self.others} more do not change surely in both" if self.others else ""
        return (
            f"{len(self.heads)} heads change in {DRIFT} and in {SHARPNESS} from the first to "
            f"the last step; the first of the two is half-way before the other in "
            f"{count[BEFORE]}, after it in {count[AFTER]}, at the same checkpoint in "
            f"{count[TOGETHER]}{rest}"
        )


def half_way(steps: Sequence[int], values: Sequence[float]) -> int:
    """Return the first step at which at least half of the change to the last is reached.

    >>> half_way([0, 10, 20, 30], [0.0, 0.2, 0.5, 0.9])
    20
    """
    change = values[-1] - values[0]
    sign = 1 if change > 0 else -1
    return next(
        step
        for step, value in zip(steps, values, strict=True)
        if sign * (value - values[0]) >= abs(change) / 2
    )


def find_orders(readings: Iterable[Reading]) -> Orders:
    """Return what comes first in every head of a series.

    Drift is the scaled dot product of mean query and mean key, whatever its sign: by its
    distance from where it began. A head counts where the intervals of the first and the last
    step lie apart, in both.
    """
    curves: dict[str, dict[tuple[str, str], dict[int, Reading]]] = {}
    for each in readings:
        if each.step is not None and each.measure in (DRIFT, SHARPNESS):
            here = curves.setdefault(each.site, {})
            here.setdefault((each.measure, each.group), {})[each.step] = each
    found: list[HeadOrder] = []
    others = 0
    for site, here in curves.items():
        if Site.parse(site).family != HEAD:
            continue
        drift = here.get((DRIFT, EARLY)) or here.get((DRIFT, ""))
        sharp = here.get((SHARPNESS, ""))
        if drift is None or sharp is None or not (_changes(drift) and _changes(sharp)):
            others += 1
            continue
        found.append(HeadOrder(site, *(_half_way(each) for each in (drift, sharp))))
    return Orders(tuple(found), others)


def _changes(curve: Mapping[int, Reading]) -> bool:
    """Whether the intervals of the first and the last step lie apart."""
    first, last = curve[min(curve)], curve[max(curve)]
    ends = [each for reading in (first, last) for each in (reading.low, reading.high)]
    if len(curve) < 2 or None in ends:
        return False
    low, high, begin, end = (each for each in ends if each is not None)
    return high < begin or end < low


def _half_way(curve: Mapping[int, Reading]) -> int:
    steps = sorted(curve)
    return half_way(steps, [curve[step].value for step in steps])
