"""The notes on measures: formula, citation, and when a measure misleads."""

import re
from functools import lru_cache
from importlib.resources import files

from isoscope.display.escape import for_html
from isoscope.types import Note

_ENTRY = re.compile(r"^@\w+\{([\w-]+),\n(.*?)^\}", flags=re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*?)\},?\s*$", flags=re.MULTILINE)


def citation(key: str) -> str:
    """Return a reference in one line, or its key where the bibliography has no such entry."""
    fields = _bibliography().get(key)
    if fields is None:
        return key
    where = fields.get("booktitle") or fields.get("journal") or ""
    parts = (_authors(fields.get("author", "")), fields.get("title", ""), where)
    arxiv = f"arXiv {fields['eprint']}" if "eprint" in fields else ""
    year = fields.get("year", "")
    return ". ".join(part for part in (*parts, arxiv, year) if part) + "."


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
