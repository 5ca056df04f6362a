"""Names and messages made harmless for a terminal, HTML, LaTeX and Markdown.

Names of runs, sites and sources come out of files that anyone may have written. A terminal
obeys escape sequences, a browser obeys tags: what is shown must never be obeyed.
"""

import html
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
    r"""Text with every character that a terminal might obey written out instead.

    >>> plain("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _written_out(char) for char in text)


def for_html(text: str) -> str:
    """Text to stand between or inside tags."""
    return html.escape(plain(text))


def for_latex(text: str) -> str:
    """Text to stand in a cell or a paragraph of LaTeX."""
    return "".join(_LATEX.get(char, char) for char in plain(text))


def for_markdown(text: str) -> str:
    """Text to stand in a cell or a list of Markdown."""
    return plain(text).translate(_MARKDOWN)


def _written_out(char: str) -> str:
    if unicodedata.category(char) == "Zs":  # no-break spaces and the like are only spaces
        return " "
    return char.encode("unicode_escape").decode("ascii")
