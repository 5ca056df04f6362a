"""Why a cloud is anisotropic: what its mean cosine is owed to, cause by cause."""

from isoscope.causes.attribution import ORDER, Attribution, attribute
from isoscope.causes.cloud import BandedDirections, CloudSums

__all__ = ["ORDER", "Attribution", "BandedDirections", "CloudSums", "attribute"]
