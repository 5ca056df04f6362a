"""Which measures are shown first, under which title, and which is the twin of which."""

from collections.abc import Iterable
from dataclasses import dataclass

PLAIN, DEBIASED = "plain", "debiased"


@dataclass(frozen=True)
class Subject:
    """What a chart is about: a measure as published and, where there is one, its twin."""

    title: str
    plain: str
    debiased: str = ""
    says: str = ""  # how to read it, in a few words

    @property
    def forms(self) -> dict[str, str]:
        """The measures by form."""
        return {PLAIN: self.plain, DEBIASED: self.debiased or self.plain}


FIRST = (
    Subject(
        "Mean cosine",
        "mean-cosine",
        "mean-cosine-cross",
        "between two rows; debiased: of different documents",
    ),
    Subject("IsoScore", "isoscore", "isoscore-debiased", "1 is isotropic, 0 a line"),
    Subject(
        "Effective rank",
        "effective-rank",
        "effective-rank-debiased",
        "dimensions that the variance fills",
    ),
    Subject("Mean share", "mean-share", says="of the squared length, in one shared vector"),
    Subject("Top share", "top-share", says="of the variance, in the first direction"),
    Subject("Norm spread", "norm-spread", says="standard deviation of lengths over their mean"),
)


def subjects(measures: Iterable[str]) -> list[Subject]:
    """Return what the charts are about: the usual ones first, then all others by name."""
    have = list(dict.fromkeys(measures))
    found: list[Subject] = []
    for each in FIRST:
        names = [name for name in (each.plain, each.debiased) if name in have]
        if len(names) == 2 or (names and not each.debiased):
            found.append(each)
        elif names:  # one of twins was not measured
            found.append(Subject(each.title, names[0], says=each.says))
    taken = {name for each in found for name in each.forms.values()}
    return found + [Subject(titled(name), name) for name in have if name not in taken]


def titled(name: str) -> str:
    """Return the name of a measure as a title."""
    words = name.replace("-", " ")
    return words[:1].upper() + words[1:]
