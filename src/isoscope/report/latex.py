"""A table for a paper."""

import re

from isoscope.report.escape import for_latex, plain
from isoscope.report.table import NOTHING, Table

_SCIENTIFIC = re.compile(r"(-?[\d.]+)e([+-]\d+)")
_NEGATIVE = re.compile(r"(?<![$\d{])-(\d[\d.]*)")


def as_latex(table: Table) -> str:
    """A booktabs table; warnings are numbered notes under it."""
    heads = [column.head for column in table.columns if column.head != "warnings"]
    if not table.rows:
        return f"% {NOTHING}\n"
    sides = "".join("l" if column.words else "r" for column in table.columns[: len(heads)])
    lines = [
        *([f"% {plain(table.caption)}"] if table.caption else []),
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        " & ".join(for_latex(head) for head in heads) + r" \\",
        r"\midrule",
        *(_row(table, row, len(heads)) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *_notes(table),
    ]
    return "\n".join(lines) + "\n"


def _row(table: Table, row: tuple[str, ...], width: int) -> str:
    """One line; the marks of the last column go up beside the measure's name."""
    marks = "".join(row[width:]).replace(" ", ",")
    cells: list[str] = []
    for cell, column in zip(row[:width], table.columns, strict=False):
        text = for_latex(cell) if column.words else _number(cell)
        raised = rf"\textsuperscript{{{marks}}}" if marks and column.head == "measure" else ""
        cells.append(text + raised)
    return " & ".join(cells) + r" \\"


def _number(text: str) -> str:
    """Numbers with a real minus sign and real powers of ten."""
    text = _SCIENTIFIC.sub(lambda m: rf"${m[1]}\times10^{{{int(m[2])}}}$", text)
    return _NEGATIVE.sub(r"$-\1$", text)


def _notes(table: Table) -> list[str]:
    notes = [rf"{for_latex(text)}\par" for text in table.notes]
    notes += [
        rf"\textsuperscript{{{number}}} {for_latex(text)}\par"
        for number, text in enumerate(table.warnings, start=1)
    ]
    notes += [rf"left out: {for_latex(text)}\par" for text in table.left_out]
    return ["", r"\smallskip", r"{\footnotesize", *notes, "}"] if notes else []
