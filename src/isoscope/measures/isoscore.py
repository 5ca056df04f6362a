"""IsoScore: how evenly is the variance spread over the dimensions?"""

from isoscope.errors import UndefinedError
from isoscope.measures.base import measure
from isoscope.measures.participation import ratio
from isoscope.measures.view import Spectrum, isotropic_spectrum


def from_ratio(participation: float, d: int) -> float:
    """Return the IsoScore that belongs to a participation ratio."""
    if d < 2:
        raise UndefinedError(
            f"isoscore needs at least 2 dimensions, got {d}",
            hint="one number a row has no directions to compare",
            slug="one-dimension",
        )
    return (participation - 1) / (d - 1)


@measure(
    "isoscore",
    reads=Spectrum,
    isotropic=lambda n, d: from_ratio(ratio(isotropic_spectrum(n, d)), d),
    collapsed=0.0,
    unmoved_by={"rotation", "scale", "shift"},
    cite="rudman2022",
    formula="(PR - 1) / (d - 1), PR = tr(C)^2 / |C|_F^2",
    misleads="Biased low unless rows (or documents) are many times d: white rows, d = 768, "
    "n = 10,000 read 0.93. Blind to the mean: a cloud far from the origin can read 1.",
    by_participation=True,
    bounds=(0.0, 1.0),
)
def isoscore(seen: Spectrum) -> float:
    """Evenness of the variance over the dimensions, 0 (one of them) to 1 (all alike).

    The published algorithm (PCA, normalised eigenvalues, defect) is exactly the
    participation ratio, rescaled:

        IsoScore = (PR - 1) / (d - 1),   PR = tr(C)^2 / |C|_F^2
    """
    return from_ratio(ratio(seen.values), seen.width)
