"""The sections of every page, one file each; experiments bring more (see `Experiment`)."""

from isoscope.display.page.section import Section
from isoscope.display.section import causes, dimensions, profiles, spectrum, verdict

SECTIONS: tuple[Section, ...] = (
    verdict.SECTION,
    profiles.LAYERS,
    profiles.SERIES,
    spectrum.SECTION,
    dimensions.SECTION,
    causes.SECTION,
    profiles.BANDS,
)

__all__ = ["SECTIONS"]
