"""Escape names and messages for a terminal, HTML, LaTeX and Markdown.

Names of runs, sites and sources come from files that anyone may have written. Terminals
execute escape sequences and browsers execute tags: text that is shown must do neither.
"""

import unicodedata

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "[": "{[}",  # at the start of a row it would be an argument of the \\ before it
    "]": "{]}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": "{'}",  # two in a row would become a closing quotation mark
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≈": r"$\approx$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "²": r"$^2$",
    "–": "--",
    "…": r"\ldots{}",
}
_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]#|~$!"}) | {
    ord("&"): "&amp;",
    ord("<"): "&lt;",
    ord(">"): "&gt;",
}


def plain(text: str) -> str:
    r"""Text with every character that a terminal might execute replaced by its escape code.

    >>> plain("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape_code(char) for char in text)


def for_html(text: str) -> str:
    """Text for the content or an attribute of an HTML element."""
    import html  # loads a table of all entities

    return html.escape(plain(text))


def for_latex(text: str) -> str:
    """Text for a cell or a paragraph of LaTeX."""
    return "".join(_LATEX.get(char, char) for char in plain(text))


def for_markdown(text: str) -> str:
    """Text for a cell or a list of Markdown."""
    return plain(text).translate(_MARKDOWN)


def _escape_code(char: str) -> str:
    if unicodedata.category(char) == "Zs":  # no-break spaces and similar are plain spaces
        return " "
    return char.encode("unicode_escape").decode("ascii")
