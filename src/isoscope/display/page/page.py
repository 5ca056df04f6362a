"""The page: one HTML document with the charts and all readings of some runs."""

import html
import os
import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from isoscope.dataclass import dataclass
from isoscope.display.frames import Value
from isoscope.display.page.bundle import (
    asset,
    deflate,
    pack,
    pack_column,
    security_policy,
    vega,
)
from isoscope.display.page.quantity import FIRST
from isoscope.display.page.section import Chart, Exhibit, Panel, Section, Switch
from isoscope.display.page.theme import config
from isoscope.display.page.write import MARK, write_bytes
from isoscope.escape import for_html
from isoscope.types import VARIANTS, Note, Reading

MOST = 20_000  # readings on a page
_FIRST = [name for each in FIRST for name in (each.debiased, each.plain) if name]
Shown = list[tuple[Section, Panel]]
_ENTRY = re.compile(r"^@\w+\{([\w-]+),\n(.*?)^\}", flags=re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """A report that displays itself in a notebook and saves itself to a file."""

    text: str
    title: str

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the page to a file completely, or change nothing."""
        content = self.text.encode("utf-8", "backslashreplace")
        return write_bytes(path, content, overwrite=overwrite)

    def _repr_html_(self) -> str:
        """Return a frame that can run its charts and nothing else."""
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
    """Return the report of some runs, with the sections that have something to show."""
    finite = [exhibit.finite.printable for exhibit in exhibits]
    kept = limit_readings(finite)
    shown = [(section, panel) for section in sections if (panel := section.on_page(kept))]
    title = ", ".join(exhibit.name for exhibit in finite)
    values: dict[str, Value] = {
        "charts": {
            chart.name: _chart(section, chart)
            for section, panel in shown
            for chart in panel.charts
        },
        "chosen": {section.name: panel.positions for section, panel in shown},
        "looks": {"light": config("light"), "dark": config("dark")},
        "readings": pack_readings(kept),
        "title": title,
    }
    used = {each.measure for exhibit in kept for each in exhibit.readings}
    relevant = [note for note in notes if note.name in used] or list(notes)
    numbers = _numbers(overflow_note(finite, kept)) if used else ""
    return Page(_document(title, shown, numbers, relevant, pack(values)), title)


def _chart(section: Section, chart: Chart) -> dict[str, Value]:
    """Return a chart as the script of the page reads it."""
    found: dict[str, Value] = {
        "section": section.name,
        "spec": chart.spec,
        "titles": {form: title for form, (_, title) in chart.forms.items()},
    }
    if chart.same_as:
        found["same"] = chart.same_as
    else:
        found["columns"] = {name: pack_column(each) for name, each in chart.columns.items()}
    if chart.ignores:
        found["ignores"] = list(chart.ignores)
    if chart.by:
        found |= {"by": chart.by, "specs": dict(chart.specs)}
    return found


# --- the readings -------------------------------------------------------------------------
def limit_readings(exhibits: Sequence[Exhibit], most: int = MOST) -> list[Exhibit]:
    """Return exhibits with at most as many readings as fit on a page, the usual ones first."""
    ranked = sorted(
        (_rank(each), place, at)
        for place, exhibit in enumerate(exhibits)
        for at, each in enumerate(exhibit.readings)
    )
    if len(ranked) <= most:
        return list(exhibits)
    kept = {(place, at) for _, place, at in ranked[:most]}
    return [
        replace(
            exhibit,
            readings=[r for at, r in enumerate(exhibit.readings) if (place, at) in kept],
        )
        for place, exhibit in enumerate(exhibits)
    ]


def _rank(each: Reading) -> tuple[bool, int, int]:
    variant = list(VARIANTS).index(each.variant) if each.variant in VARIANTS else 9
    usual = _FIRST.index(each.measure) if each.measure in _FIRST else len(_FIRST)
    return (bool(each.group), variant, usual)


def overflow_note(exhibits: Sequence[Exhibit], kept: Sequence[Exhibit]) -> str:
    """Return a note on the readings that did not fit on the page; empty if all did."""
    total, here = (sum(len(e.readings) for e in each) for each in (exhibits, kept))
    if total == here:
        return ""
    return (
        f"{total - here:,} of {total:,} readings do not fit on this page; the least usual "
        "measures and variants were dropped first. All readings: isoscope read RUN --csv"
    )


def pack_readings(exhibits: Sequence[Exhibit]) -> dict[str, Value]:
    """Return all readings as packed columns, with the values of an isotropic cloud."""
    pairs = [(exhibit, each) for exhibit in exhibits for each in exhibit.readings]
    found: dict[str, Value] = {
        field.name: pack_column(getattr(each, field.name) for _, each in pairs)
        for field in fields(Reading)
    }
    levels = (exhibit.levels.get((r.site, r.variant, r.measure)) for exhibit, r in pairs)
    return found | {"isotropic": pack_column(levels)}


# --- HTML ---------------------------------------------------------------------------------
def _document(
    title: str, shown: Shown, numbers: str, notes: Sequence[Note], values: str
) -> str:
    script, library = asset("page.js"), vega()
    name = for_html(title)
    body = "".join(_section(section, panel) for section, panel in shown)
    links = [(section.name, section.title) for section, _ in shown]
    links += [("numbers", "All readings")] * bool(numbers) + [("method", "Method")] * bool(
        notes
    )
    contents = "".join(f'<a href="#{key}">{for_html(text)}</a>' for key, text in links)
    return (
        f"<!doctype html>\n{MARK}\n"
        f'<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        f'content="{security_policy(script, library)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{name} · isoscope</title><style>{asset('page.css')}</style></head><body>"
        '<a class="skip" href="#verdict">Skip to the verdict</a>'
        f'<header><p class="eyebrow">isoscope report</p><h1>{name}</h1>'
        '<button type="button" id="look" aria-live="polite">Dark</button>'
        f'<nav aria-label="Sections">{contents}</nav></header>'
        f'<main><p id="trouble" role="alert" hidden></p>{_NO_SCRIPT}{body}'
        f"{numbers}{_method(notes)}</main>"
        "<footer>Written by isoscope. This page is a single file: it contains aggregates only "
        "and makes no network requests.</footer>"
        f'<script type="text/plain" id="vega">{deflate(library)}</script>'
        f'<script type="text/plain" id="values">{values}</script>'
        f"<script>{script}</script></body></html>\n"
    )


_NO_SCRIPT = (
    "<noscript><p>The charts and the table of readings need JavaScript, which is part of this "
    "file. Without it: isoscope read RUN.</p></noscript>"
)


def _section(section: Section, panel: Panel) -> str:
    lead = "".join(f'<p class="lead">{for_html(text)}</p>' for text in panel.lead)
    controls = "".join(_switch(section, each) for each in panel.switches)
    bar = f'<div class="controls">{controls}</div>' if controls else ""
    charts = "".join(_figure(chart) for chart in panel.charts)
    grid = f'<div class="charts">{charts}</div>' if charts else ""
    folded = sum(chart.folded for chart in panel.charts)
    more = (
        f'<button type="button" class="more" aria-expanded="false" data-more="{section.name}">'
        f"Show all {len(panel.charts)} measures</button>"
        if folded
        else ""
    )
    return (
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">'
        f'<h2 id="{section.name}-title">{for_html(section.title)}</h2>'
        f"{lead}{bar}{grid}{more}{panel.body}</section>"
    )


def _switch(section: Section, switch: Switch) -> str:
    name = f"{section.name}-{switch.name}"
    where = f'data-section="{section.name}" data-switch="{switch.name}"'
    if switch.slider:
        return _slider(name, where, switch)
    if switch.several:
        return _boxes(name, where, switch)
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
    hidden = " hidden" * (len(switch.choices) == 1)  # nothing to choose
    return (
        f'<fieldset class="choice"{hidden}><legend>{for_html(switch.label)}</legend>'
        f"{radios}</fieldset>"
    )


def _slider(name: str, where: str, switch: Switch) -> str:
    """Return a slider through the choices; its words are beside it."""
    values = [value for value, _ in switch.choices]
    labels = dict(switch.choices)
    return (
        f'<label class="choice slider">{for_html(switch.label)}'
        f'<input type="range" id="{name}" {where} min="0" max="{len(values) - 1}" '
        f'value="{values.index(switch.chosen)}" data-values="{for_html(",".join(values))}" '
        f'aria-describedby="{name}-at">'
        f'<output id="{name}-at">{for_html(labels[switch.chosen])}</output></label>'
    )


def _boxes(name: str, where: str, switch: Switch) -> str:
    """Return a box to tick for each choice."""
    chosen = switch.chosen.split(",")
    boxes = "".join(
        f'<label><input type="checkbox" name="{name}" value="{for_html(value)}" {where}'
        f"{' checked' * (value in chosen)}><span>{for_html(text)}</span></label>"
        for value, text in switch.choices
    )
    return (
        f'<fieldset class="choice boxes"><legend>{for_html(switch.label)}</legend>{boxes}'
        "</fieldset>"
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


def _numbers(lost: str) -> str:
    note = f'<p class="remarks">{for_html(lost)}</p>' if lost else ""
    saves = "".join(
        f'<button type="button" data-save="{kind}">{name}</button>'
        for kind, name in (("csv", "CSV"), ("json", "JSON"), ("latex", "LaTeX"))
    )
    return (
        '<section id="numbers" aria-labelledby="numbers-title">'
        '<h2 id="numbers-title">All readings</h2>'
        '<p class="lead">All readings with their 95 % intervals. Click a heading to sort. The '
        "filter keeps the lines that contain all of its words. The buttons save the lines that "
        "are shown.</p>"
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
        '<p class="lead">The formula and the source of each measure, and when it misleads.</p>'
        f'<div class="drawer">{"".join(map(note_html, notes))}</div></section>'
    )


# --- notes on measures: formula, citation, and when a measure misleads ----------------------
def citation(key: str) -> str:
    """Return a reference in one line, or its key where the bibliography has no such entry."""
    fields = _bibliography().get(key)
    if fields is None:
        return key
    where = fields.get("booktitle") or fields.get("journal") or ""
    parts = (_authors(fields.get("author", "")), fields.get("title", ""), where)
    arxiv = f"arXiv {fields['eprint']}" if "eprint" in fields else ""
    return ". ".join(part for part in (*parts, arxiv, fields.get("year", "")) if part) + "."


@lru_cache(maxsize=1)
def _bibliography() -> dict[str, dict[str, str]]:
    text = files("isoscope.display").joinpath("references.bib").read_text(encoding="utf-8")
    return {
        key: {name: _plain(value) for name, value in _FIELD.findall(body)}
        for key, body in _ENTRY.findall(text)
    }


def _plain(text: str) -> str:
    """Return TeX of a bibliography as plain text."""
    text = text.replace(r"$\alpha$", "α")
    text = re.sub(r"\\[`'^\"~]\{?(\w)\}?", r"\1", text)
    return text.replace("{", "").replace("}", "").replace("\\&", "&").replace("--", "–")


def _authors(text: str) -> str:
    names = [name.strip() for name in text.split(" and ") if name.strip()]
    turned = [" ".join(reversed([p.strip() for p in name.split(",", 1)])) for name in names]
    return f"{turned[0]} et al" if len(turned) > 3 else ", ".join(turned)


def note_html(note: Note) -> str:
    """Return the collapsed note on a measure."""
    title, formula, misleads = (for_html(t) for t in (note.title, note.formula, note.misleads))
    return (
        f'<details id="method-{for_html(note.name)}"><summary>'
        f"<code>{for_html(note.name)}</code> "
        f"{title}</summary><dl><dt>Formula</dt><dd><code>{formula}</code></dd>"
        f"<dt>When it misleads</dt><dd>{misleads}</dd>"
        f"<dt>Source</dt><dd>{for_html(citation(note.cite))}</dd></dl></details>"
    )
