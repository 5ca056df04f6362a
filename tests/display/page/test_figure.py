"""Charts for a paper."""

import re
import struct
import zlib
from xml.etree import ElementTree

import pytest

from isoscope.display.page.figure import convert_figure, draw_figure
from isoscope.display.section import causes, dimensions, profiles, spectrum


@pytest.fixture(scope="module")
def four(demo):
    panel = profiles.show_layers([demo])
    return draw_figure(panel.charts[:4], panel.positions, 84.0)


def test_the_picture_has_the_width_requested(four):
    root = ElementTree.fromstring(convert_figure(four, ".svg"))
    assert root.get("width") == "84.000mm"
    assert four.count("<svg") == 5


def test_small_charts_do_not_reach_over_their_place(four):
    inner = [float(w) for w in re.findall(r'<svg x=[^>]*? width="([\d.]+)"', four)]
    assert len(inner) == 4
    assert max(inner) <= (84 * 72 / 25.4 - 8) / 2 + 1


def test_a_pdf_has_embedded_fonts_and_none_of_type_3(four):
    pdf = convert_figure(four, ".pdf")
    assert pdf.startswith(b"%PDF-")
    parts = [pdf]
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, flags=re.DOTALL):
        try:
            parts.append(zlib.decompress(stream))
        except zlib.error:
            continue
    text = b"\n".join(parts)
    assert b"/Type3" not in text
    assert re.search(rb"/FontFile[23]?\b", text)
    box = re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+)", text)
    assert float(box[1]) == pytest.approx(84 * 72 / 25.4, abs=1)


def test_a_png_has_three_hundred_dots_an_inch(demo):
    panel = spectrum.show([demo])
    png = convert_figure(draw_figure(panel.charts, panel.positions, 84.0), ".png")
    width, _ = struct.unpack(">II", png[16:24])
    assert width == pytest.approx(84 / 25.4 * 300, abs=2)


def test_the_figure_draws_the_rows_of_the_chosen_variant(demo):
    panel = profiles.show_layers([demo])
    for variant in ("all", "no-sink"):
        chosen = panel.positions | {"variant": variant}
        drawn = draw_figure(panel.charts[:1], chosen, 84.0)
        found = re.findall(r'aria-label="at: (\w+); value: ([\d.]+); run: demo; site', drawn)
        rows = panel.charts[0].rows(**chosen)
        assert [at for at, _ in found] == [row["at"] for row in rows]
        values = [float(value) for _, value in found]
        assert values == pytest.approx([row["value"] for row in rows], rel=1e-9)


def test_long_names_of_two_runs_stay_inside_their_charts_and_apart(exhibits):
    names = [f"{'WIDE-NAME-' * 17}{step}" for step in (1000, 2000)]
    for section in (dimensions, causes):
        panel = section.show([exhibits.exhibit(name) for name in names])
        drawn = draw_figure(panel.charts, panel.positions, 84.0)
        heads = re.findall(r"Title text '([^']*)'", drawn)
        assert set(heads) == {f"WIDE-NAME-WIDE-NAME-…NAME-WIDE-NAME-{n}" for n in (1000, 2000)}
        assert len(heads) == len(panel.charts)
        inner = [float(w) for w in re.findall(r'<svg x=[^>]*? width="([\d.]+)"', drawn)]
        assert max(inner) <= 84 * 72 / 25.4 + 1


def test_charts_of_half_a_page_stand_one_above_the_other_in_a_column(demo):
    panel = profiles.show_bands([demo])
    column, page = (
        draw_figure(panel.charts, panel.positions, width) for width in (84.0, 174.0)
    )
    places = [re.findall(r'<svg x="([\d.]+)" y="([\d.]+)"', each) for each in (column, page)]
    assert [float(x) for x, _ in places[0]] == [0, 0]
    assert [float(y) for _, y in places[1]] == [0, 0]
