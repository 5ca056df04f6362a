"""The sections of every page, one file each; experiments bring more (see `Experiment`)."""

from isoscope.display.page.panel import Section
from isoscope.display.section import (
    bands,
    causes,
    dimensions,
    layers,
    series,
    spectrum,
    verdict,
)

SECTIONS: tuple[Section, ...] = (
    verdict.SECTION,
    layers.SECTION,
    series.SECTION,
    spectrum.SECTION,
    dimensions.SECTION,
    causes.SECTION,
    bands.SECTION,
)

__all__ = ["SECTIONS"]
