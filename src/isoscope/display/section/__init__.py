"""The sections of every page, one file each; experiments bring more (see `Experiment`)."""

from isoscope.display.page.section import Section
from isoscope.display.section import (
    bands,
    causes,
    dimensions,
    layers,
    spectrum,
    verdict,
)

SECTIONS: tuple[Section, ...] = (
    verdict.SECTION,
    layers.LAYERS,
    layers.SERIES,
    spectrum.SECTION,
    dimensions.SECTION,
    causes.SECTION,
    bands.SECTION,
)

__all__ = ["SECTIONS"]
