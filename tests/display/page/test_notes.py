"""The notes on measures."""

import re
from pathlib import Path

from isoscope.display.page.page import citation, note_html
from isoscope.measures import MEASURES
from isoscope.types import Note

ROOT = Path(__file__).parents[3]


def test_the_bibliography_of_the_package_is_that_of_the_documentation():
    ours = ROOT / "src" / "isoscope" / "display" / "references.bib"
    assert ours.read_text() == (ROOT / "docs" / "references.bib").read_text()


def test_every_measure_has_a_citation_in_words():
    for measure in MEASURES.values():
        text = citation(measure.cite)
        assert re.search(r"\d{4}", text), measure.name
        assert " " in text and not set("{}\\") & set(text), measure.name


def test_a_key_without_an_entry_stands_for_itself():
    assert citation("nobody1999") == "nobody1999"


def test_notes_are_escaped():
    text = note_html(Note("a", "<b>", "x < y", "rudman2022", "never & always"))
    assert "&lt;b&gt;" in text and "x &lt; y" in text and "never &amp; always" in text
    assert "Rudman" in text
