"""A table for a paper."""

import re

from isoscope.display.escape import for_latex, plain
from isoscope.display.table import NOTHING, Table

_SCIENTIFIC = re.compile(r"(-?[\d.]+)e([+-]\d+)")
_NEGATIVE = re.compile(r"(?<![$\d{])-(\d[\d.]*)")


def as_latex(table: Table) -> str:
    """A booktabs table; warnings are numbered notes under it."""
    if not table.rows:
        return f"% {NOTHING}\n"
    kept = [column for column in table.columns if column.role != "marks"]
    sides = "".join("l" if column.words else "r" for column in kept)
    lines = [
        *([f"% {plain(table.caption)}"] if table.caption else []),
        r"% needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{sides}}}",
        r"\toprule",
        " & ".join(for_latex(column.head) for column in kept) + r" \\",
        r"\midrule",
        *(_row(table, row) for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        *_notes(table),
    ]
    return "\n".join(lines) + "\n"


def _row(table: Table, row: tuple[str, ...]) -> str:
    """One line; the marks of warnings are raised beside the name."""
    pairs = list(zip(row, table.columns, strict=True))
    marks = "".join(cell for cell, column in pairs if column.role == "marks").replace(" ", ",")
    cells: list[str] = []
    for cell, column in pairs:
        if column.role == "marks":
            continue
        text = for_latex(cell) if column.words else _number(cell)
        raised = rf"\textsuperscript{{{marks}}}" if marks and column.role == "name" else ""
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
