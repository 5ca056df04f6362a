"""The table in a notebook."""

from html.parser import HTMLParser

from isoscope.display import READINGS, Results
from isoscope.display.html import as_html


class Seen(HTMLParser):
    """Which tags a browser would see, and the text between them."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


def seen(readings):
    parser = Seen()
    parser.feed("".join(map(as_html, readings.tables)))
    return parser


def test_html_holds_headings_cells_warnings_and_what_was_left_out(readings):
    texts = seen(readings).texts
    for text in ("measure", "0.4631", "[0.4610, 0.4652]", "5,000", "n < 10 d", "1 2"):
        assert text in texts
    assert any("twonn: needs" in text for text in texts)


def test_no_name_becomes_a_tag(hostile):
    assert set(seen(hostile).tags) <= {
        "table", "caption", "thead", "tbody", "tr", "th", "td", "ol", "ul", "li",
    }  # fmt: skip


def test_no_readings_are_a_sentence():
    assert Results([], READINGS)._repr_html_() == "<p>no readings</p>"
