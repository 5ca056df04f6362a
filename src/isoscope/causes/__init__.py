"""Why a cloud is anisotropic: what its mean cosine is owed to, cause by cause."""

from isoscope.causes.attribution import ORDER, Attribution, attributed
from isoscope.causes.cloud import Cloud, Seen

__all__ = ["ORDER", "Attribution", "Cloud", "Seen", "attributed"]
