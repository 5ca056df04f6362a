"""The page: one HTML document with everything in it."""

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isoscope.display.escape import for_html
from isoscope.display.page.exhibit import Exhibit
from isoscope.display.page.method import drawer
from isoscope.display.page.numbers import Numbers, limited
from isoscope.display.page.pack import column, deflated, packed
from isoscope.display.page.panel import Chart, Panel, Section, Switch
from isoscope.display.page.runtime import asset, policy, vega
from isoscope.display.page.theme import config
from isoscope.display.page.write import MARK, write_text
from isoscope.types import Note

Shown = list[tuple[Section, Panel]]


@dataclass(frozen=True)
class Page:
    """A report: shows itself in a notebook, saves itself to a file."""

    text: str
    title: str

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the page whole, or leave everything as it was."""
        return write_text(path, self.text, overwrite=overwrite)

    def _repr_html_(self) -> str:
        """Return a frame of its own, which can run its charts and nothing else."""
        return (
            f'<iframe title="{html.escape(self.title)}" '
            'sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:900px;border:0" srcdoc="{html.escape(self.text)}">'
            "</iframe>"
        )

    def __repr__(self) -> str:
        return f"<report of {self.title}, {len(self.text) / 1e6:.2f} MB; .save(path) writes it>"


def page(
    exhibits: Sequence[Exhibit], notes: Sequence[Note] = (), sections: Sequence[Section] = ()
) -> Page:
    """Return the report of some runs; sections that have nothing to show are left out."""
    finite = [exhibit.finite.harmless for exhibit in exhibits]
    kept, numbers = limited(finite)
    shown = [(section, found) for section in sections if (found := section.show(kept))]
    title = ", ".join(exhibit.name for exhibit in finite)
    levels = _levels(kept)
    values = {
        "charts": {
            c.name: _chart(section, c) for section, found in shown for c in found.charts
        },
        "chosen": {section.name: found.chosen for section, found in shown},
        "looks": {"light": config("light"), "dark": config("dark")},
        "readings": numbers.packed(levels),
        "title": title,
    }
    return Page(_document(title, shown, numbers, notes, packed(values)), title)


def _levels(exhibits: Sequence[Exhibit]) -> list[float | None]:
    return [
        exhibit.levels.get((each.site, each.variant, each.measure))
        for exhibit in exhibits
        for each in exhibit.readings
    ]


def _chart(section: Section, chart: Chart) -> dict[str, Any]:
    columns = {name: column(cells) for name, cells in chart.columns.items()}
    return {"section": section.name, "spec": chart.spec, "columns": columns}


def _document(
    title: str, shown: Shown, numbers: Numbers, notes: Sequence[Note], values: str
) -> str:
    script, library = asset("page.js"), vega()
    name = for_html(title)
    body = "".join(_section(section, found) for section, found in shown)
    links = [(section.name, section.title) for section, _ in shown]
    links += [("numbers", "Every number"), ("method", "Method")]
    contents = "".join(f'<a href="#{key}">{for_html(text)}</a>' for key, text in links)
    used = {each.measure for each in numbers.kept}
    told = [note for note in notes if note.name in used] or list(notes)
    return (
        f"<!doctype html>\n{MARK}\n"
        f'<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(script, library)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{name} · isoscope</title><style>{asset('page.css')}</style></head><body>"
        '<a class="skip" href="#verdict">Skip to the verdict</a>'
        f'<header><p class="eyebrow">isoscope report</p><h1>{name}</h1>'
        '<button type="button" id="look" aria-live="polite">Dark</button>'
        f'<nav aria-label="Sections">{contents}</nav></header>'
        f'<main><p id="trouble" role="alert" hidden></p>{_no_script()}{body}'
        f"{_numbers(numbers)}{_method(told)}</main>"
        "<footer>Made by isoscope. This page is one file: it holds aggregates only and asks "
        "nothing of the network.</footer>"
        f'<script type="text/plain" id="vega">{deflated(library)}</script>'
        f'<script type="text/plain" id="values">{values}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _no_script() -> str:
    return (
        "<noscript><p>Charts and the table of numbers need scripts, which are part of this "
        "file. Without them: isoscope read RUN.</p></noscript>"
    )


def _section(section: Section, found: Panel) -> str:
    lead = "".join(f'<p class="lead">{for_html(text)}</p>' for text in found.lead)
    controls = "".join(_switch(section, each) for each in found.switches)
    bar = f'<div class="controls">{controls}</div>' if controls else ""
    charts = "".join(_figure(chart) for chart in found.charts)
    grid = f'<div class="charts">{charts}</div>' if charts else ""
    folded = sum(chart.folded for chart in found.charts)
    more = (
        f'<button type="button" class="more" aria-expanded="false" data-more="{section.name}">'
        f"Show all {len(found.charts)} measures</button>"
        if folded
        else ""
    )
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">'
        f'<h2 id="{section.name}-title">{for_html(section.title)}</h2>'
        f"{lead}{bar}{grid}{more}{found.body}</section>"
    )


def _switch(section: Section, switch: Switch) -> str:
    name = f"{section.name}-{switch.name}"
    where = f'data-section="{section.name}" data-switch="{switch.name}"'
    if len(switch.choices) > 4 or sum(len(text) for _, text in switch.choices) > 60:
        options = "".join(
            f'<option value="{for_html(value)}"{" selected" * (value == switch.chosen)}>'
            f"{for_html(text)}</option>"
            for value, text in switch.choices
        )
        return (
            f'<label class="choice">{for_html(switch.label)}'
            f'<select id="{name}" {where}>{options}</select></label>'
        )
    radios = "".join(
        f'<label><input type="radio" name="{name}" value="{for_html(value)}" {where}'
        f"{' checked' * (value == switch.chosen)}><span>{for_html(text)}</span></label>"
        for value, text in switch.choices
    )
    return (
        f'<fieldset class="choice"><legend>{for_html(switch.label)}</legend>{radios}</fieldset>'
    )


def _figure(chart: Chart) -> str:
    kind = "wide" if chart.wide else "half" * chart.half
    hidden = " hidden" * chart.folded
    return (
        f'<figure class="{kind}" data-folded="{int(chart.folded)}"{hidden}>'
        f'<div class="chart" id="chart-{for_html(chart.name)}" '
        f'data-chart="{for_html(chart.name)}" role="img" '
        f'aria-label="{for_html(chart.alt)}"></div>'
        f'<button type="button" class="save" data-svg="{for_html(chart.name)}" '
        f'aria-label="Save {for_html(chart.title)} as SVG">SVG</button></figure>'
    )


def _numbers(numbers: Numbers) -> str:
    left_out = numbers.left_out
    note = f'<p class="remarks">{for_html(left_out)}</p>' if left_out else ""
    saves = "".join(
        f'<button type="button" data-save="{kind}">{name}</button>'
        for kind, name in (("csv", "CSV"), ("json", "JSON"), ("latex", "LaTeX"))
    )
    return (
        '<section id="numbers" aria-labelledby="numbers-title">'
        '<h2 id="numbers-title">Every number</h2>'
        '<p class="lead">All readings with their 95 % intervals. Headings sort; words in the '
        "box must all occur in a line. What is saved is what is shown.</p>"
        f'{note}<div class="controls"><label class="choice">Filter'
        '<input type="search" id="filter" autocomplete="off" spellcheck="false" '
        'placeholder="isoscore resid no-sink"></label>'
        f'<span id="count" aria-live="polite"></span><span class="saves">{saves}</span></div>'
        '<div class="scroll" tabindex="0" role="region" aria-labelledby="numbers-title">'
        '<table id="table"><thead><tr></tr></thead><tbody></tbody></table></div>'
        '<p><button type="button" id="rest" hidden>Show more</button></p>'
        '<p id="printed"></p>'
        '<ol id="warnings"></ol></section>'
    )


def _method(notes: Sequence[Note]) -> str:
    if not notes:
        return ""
    return (
        '<section id="method" aria-labelledby="method-title"><h2 id="method-title">Method</h2>'
        '<p class="lead">What each measure is, where it comes from, and when it misleads.</p>'
        f'<div class="drawer">{drawer(notes)}</div></section>'
    )
