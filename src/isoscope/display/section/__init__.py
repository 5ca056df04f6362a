"""The sections of a page, one file each; a new one is a file and a line in this list."""

from isoscope.display.page.section import Section
from isoscope.display.section import (
    bands,
    causes,
    dimensions,
    embeddings,
    layers,
    norm,
    spectrum,
    sweep,
    verdict,
)

SECTIONS: tuple[Section, ...] = (
    verdict.SECTION,
    sweep.SECTION,
    layers.LAYERS,
    layers.SERIES,
    spectrum.SECTION,
    dimensions.SECTION,
    causes.SECTION,
    bands.SECTION,
    norm.SECTION,
    embeddings.SECTION,
)

__all__ = ["SECTIONS"]
