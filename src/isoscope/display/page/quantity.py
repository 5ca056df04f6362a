"""Quantities: a measure as published with its debiased twin, in the order of charts."""

from collections.abc import Iterable

from isoscope.dataclass import dataclass
from isoscope.types import DEBIASED_TWINS

PLAIN, DEBIASED = "plain", "debiased"


@dataclass(frozen=True)
class Quantity:
    """What one chart shows: a measure and, where there is one, its debiased twin."""

    title: str
    plain: str
    debiased: str = ""
    hint: str = ""  # how to read it, in a few words

    @property
    def forms(self) -> dict[str, str]:
        """The measures by form."""
        return {PLAIN: self.plain, DEBIASED: self.debiased or self.plain}

    @property
    def heading(self) -> str:
        """The title of a chart, which says which estimate it shows at first."""
        return f"{self.title}, {DEBIASED}" if self.debiased else self.title

    @property
    def labelled(self) -> dict[str, tuple[str, str]]:
        """Measure and title of a chart by form; empty where there is only one form."""
        if not self.debiased:
            return {}
        return {form: (name, f"{self.title}, {form}") for form, name in self.forms.items()}


def title_of(measure: str) -> str:
    """Return the name of a measure as a title."""
    words = measure.replace("-", " ")
    return words[:1].upper() + words[1:]


_HINTS = {  # of the quantities whose charts come first
    "mean-cosine": "of two rows; debiased: rows of different documents",
    "isoscore": "1 is isotropic, 0 is a line",
    "effective-rank": "number of dimensions that the variance fills",
    "mean-share": "share of the squared length in the mean vector",
    "top-share": "share of the variance in the first direction",
    "norm-spread": "standard deviation of norms over their mean",
}
FIRST = tuple(
    Quantity(
        "IsoScore" if name == "isoscore" else title_of(name),
        name,
        DEBIASED_TWINS.get(name, ""),
        hint,
    )
    for name, hint in _HINTS.items()
)


def quantities(measures: Iterable[str]) -> list[Quantity]:
    """Return what charts show: the usual quantities first, then all others by name."""
    have = list(dict.fromkeys(measures))
    found: list[Quantity] = []
    for each in FIRST:
        names = [name for name in (each.plain, each.debiased) if name in have]
        if len(names) == 2 or (names and not each.debiased):
            found.append(each)
        elif names:  # only one of the twins was measured
            form = PLAIN if names[0] == each.plain else DEBIASED
            found.append(Quantity(f"{each.title}, {form}", names[0], hint=each.hint))
    done = {name for each in found for name in each.forms.values()}
    return found + [Quantity(title_of(name), name) for name in have if name not in done]
