"""IsoScore*: IsoScore of a covariance shrunk towards a stable one."""

import numpy as np

from isoscope.errors import ConfigError
from isoscope.measures.base import measure
from isoscope.measures.isoscore import from_ratio
from isoscope.measures.participation import ratio
from isoscope.measures.view import Spectrum, isotropic_spectrum
from isoscope.types import Array

ZETA = 0.2


def check_zeta(zeta: float) -> float:
    """Return the weight of the stable covariance, or refuse it."""
    if not 0 <= zeta <= 1:
        raise ConfigError(
            f"expected zeta between 0 and 1, got {zeta}",
            hint="zeta is the weight of the stable covariance; 0.2 is usual",
            slug="zeta",
        )
    return zeta


def shrink(values: Array, zeta: float) -> Array:
    """Return eigenvalues moved towards their mean."""
    return (1 - zeta) * values + zeta * values.mean()


def as_published(seen: Spectrum, *, zeta: float = ZETA) -> float:
    """IsoScore* with the identity as the stable covariance, as the released code has it."""
    return from_ratio(ratio((1 - check_zeta(zeta)) * seen.values + zeta), seen.width)


@measure(
    "isoscore-star",
    reads=Spectrum,
    isotropic=lambda n, d, zeta=ZETA: from_ratio(
        ratio(shrink(isotropic_spectrum(n, d), zeta)), d
    ),
    collapsed=lambda _n, d: from_ratio(ratio(shrink(np.eye(1, d)[0] * d, ZETA)), d),
    unmoved_by={"rotation", "scale", "shift"},
    cite="rudman2024",
    formula="IsoScore of (1 - zeta) C + zeta C0, C0 = (tr C / d) I, zeta = 0.2",
    misleads="Shrinking lifts every value; compare only at the same zeta. With the identity as "
    "C0 (--as-published) it depends on the scale of the rows.",
    published=as_published,
    by_participation=True,
    bounds=(0.0, 1.0),
)
def isoscore_star(seen: Spectrum, *, zeta: float = ZETA) -> float:
    """IsoScore of the covariance shrunk towards a multiple of the identity.

        IsoScore* = IsoScore((1 - zeta) C + zeta (tr C / d) I)

    The multiple is tr C / d rather than 1, because the plain identity makes the value
    depend on scale: the same cloud read 1.000, 0.838 and 0.215 at three scales.
    """
    return from_ratio(ratio(shrink(seen.values, check_zeta(zeta))), seen.width)
