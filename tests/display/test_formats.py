"""Tables as text, Markdown, HTML, LaTeX and on a terminal."""

from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO

import pytest
from rich.console import Console

from isoscope.display import READINGS, Results
from isoscope.display.formats import as_html, as_markdown, as_text, print_table
from isoscope.display.table import Column, Table

TEXT = """\
run notes, site rows, variant all

measure            value           95 % interval  isotropic      n    d  warnings
mean-cosine       0.4631        [0.4610, 0.4652]          0  5,000  768
isoscore         -0.0214      [-0.0301, -0.0102]          1  5,000  768  1 2
participation  1.234e-05  [1.214e-05, 1.254e-05]             5,000  768  2
alpha              1.500                                     5,000  768

1  plain value: biased by more than its interval
2  n < 10 d
skipped: twonn: needs at least 3 distinct rows, got 2
"""

MARKDOWN = r"""run notes, site rows, variant all

| measure | value | 95 % interval | isotropic | n | d | warnings |
| :-- | --: | --: | --: | --: | --: | :-- |
| mean-cosine | 0.4631 | [0.4610, 0.4652] | 0 | 5,000 | 768 |  |
| isoscore | -0.0214 | [-0.0301, -0.0102] | 1 | 5,000 | 768 | 1 2 |
| participation | 1.234e-05 | [1.214e-05, 1.254e-05] |  | 5,000 | 768 | 2 |
| alpha | 1.500 |  |  | 5,000 | 768 |  |

1. plain value: biased by more than its interval
2. n &lt; 10 d

- skipped: twonn: needs at least 3 distinct rows, got 2
"""


def test_text(readings):
    assert "".join(map(as_text, readings.tables)) == TEXT


def test_markdown(readings):
    assert "".join(map(as_markdown, readings.tables)) == MARKDOWN


@pytest.mark.parametrize(
    "style", ["to_json", "to_markdown", "to_latex", "__str__", "_repr_html_"]
)
def test_no_format_lets_a_control_character_through(hostile, style):
    text = getattr(hostile, style)()
    assert text.replace("\n", "").isprintable()
    if style == "to_json":
        return
    assert "<script" not in text or style in ("__str__", "to_latex")


def test_a_hostile_name_stays_in_its_cell(hostile):
    table = hostile.to_markdown().split("\n\n")[1].splitlines()
    bars = [line.replace("\\|", "").count("|") for line in table]
    assert len(set(bars)) == 1


def test_wide_characters_keep_the_columns_in_line(make):
    readings = Results(
        [make("isoscore", 0.5, run="日本"), make("isoscore", 0.5, run="abcd")], READINGS
    )
    first, second = str(readings).splitlines()[-2:]
    assert first.index("isoscore") + 2 == second.index("isoscore")  # two wide ones before it


def test_no_readings_say_so():
    nothing = Results([], READINGS, left_out=["alpha: needs at least 10 rows, got 2"])
    for text in (str(nothing), nothing.to_markdown()):
        assert text.startswith("no readings")
        assert "alpha: needs at least 10 rows, got 2" in text
    assert nothing.to_json() == ""


def test_a_group_or_step_is_reported(make):
    one = make("isoscore", 0.5)
    readings = Results([one, replace(one, group="rare", step=100)], READINGS)
    assert "rare" in str(readings)
    assert "100" in str(readings)


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


def test_html_holds_headings_cells_warnings_and_what_was_excluded(readings):
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


LATEX = r"""% run notes, site rows, variant all
% needs \usepackage{booktabs}
\begin{tabular}{lrrrrr}
\toprule
measure & value & 95 \% interval & isotropic & n & d \\
\midrule
mean-cosine & 0.4631 & [0.4610, 0.4652] & 0 & 5,000 & 768 \\
isoscore\textsuperscript{1,2} & $-0.0214$ & [$-0.0301$, $-0.0102$] & 1 & 5,000 & 768 \\
participation\textsuperscript{2} & $1.234\times10^{-5}$ & [$1.214\times10^{-5}$, $1.254\times10^{-5}$] &  & 5,000 & 768 \\
alpha & 1.500 &  &  & 5,000 & 768 \\
\bottomrule
\end{tabular}

\smallskip
{\footnotesize
\textsuperscript{1} plain value: biased by more than its interval\par
\textsuperscript{2} n \textless{} 10 d\par
skipped: twonn: needs at least 3 distinct rows, got 2\par
}
"""  # noqa: E501


def test_latex(readings):
    assert readings.to_latex() == LATEX


def test_a_name_is_no_command_and_no_argument_of_the_line_before(hostile):
    text = hostile.to_latex()
    assert r"\write18" not in text.replace(r"\textbackslash{}write18", "")
    assert not any(line.startswith("[") for line in text.splitlines())


def test_no_readings_are_a_comment():
    assert Results([], READINGS).to_latex() == "% no readings\n"


def test_without_warnings_nothing_stands_under_the_table(make):
    assert Results([make("isoscore", 0.5)], READINGS).to_latex().endswith("\\end{tabular}\n")


def printed(readings, width=100):
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=False)
    for table in readings.tables:
        print_table(table, console)
    return out.getvalue()


def test_a_terminal_shows_values_intervals_warnings_and_what_was_excluded(readings):
    text = printed(readings)
    for part in ("0.4631", "[0.4610, 0.4652]", "1 2", "2  n < 10 d", "skipped: twonn"):
        assert part in text


@pytest.mark.parametrize("width", [20, 60, 80])
def test_a_number_is_never_cut_however_narrow_the_terminal(readings, width):
    assert "[1.214e-05, 1.254e-05]" in printed(readings, width)


def test_markup_and_escapes_in_names_are_shown_not_obeyed(make):
    readings = Results(
        [make("isoscore", 0.5, run="[bold]x[/bold]\x1b[2J"), make("isoscore", 0.5)], READINGS
    )
    text = printed(readings, width=120)
    assert r"[bold]x[/bold]\x1b[2J" in text
    assert "\x1b[2J" not in text


def test_a_terminal_says_that_there_are_no_readings():
    assert printed(Results([], READINGS)).startswith("no readings")


def test_words_give_way_before_the_table_is_wider_than_the_terminal():
    rules = Column("rule", ("isoscore-debiased@resid.* < 0.99999x", "x"), words=True, fold=14)
    columns = (rules, Column("verdict", ("could not run", "holds"), words=True, fold=8))
    numbers = Column("95 % interval", ("[0.000737, 0.000878]",) * 2)
    printed_lines = {}
    for width in (30, 50, 80):
        console = Console(width=width, file=StringIO())
        print_table(Table("", (*columns, numbers)), console)
        printed_lines[width] = console.file.getvalue().splitlines()
    assert max(map(len, printed_lines[80])) <= 80
    assert max(map(len, printed_lines[50])) <= 50
    assert all(
        any("[0.000737, 0.000878]" in line for line in x) for x in printed_lines.values()
    )


def test_columns_that_do_not_fit_beside_each_other_stand_below_each_other():
    sites = Column("site", ("resid.0", "unembed.weight"), words=True, fold=12)
    numbers = [Column(f"measure-{n}", (f"{n}.123 ±0.004",) * 2) for n in range(5)]
    console = Console(width=50, file=StringIO())
    print_table(Table("", (sites, *numbers)), console)
    lines = [each.rstrip() for each in console.file.getvalue().splitlines()]
    assert max(map(len, lines)) <= 50
    assert [each.split() for each in lines if each.startswith("site")] == [
        ["site", "measure-0", "measure-1"],
        ["site", "measure-2", "measure-3"],
        ["site", "measure-4"],
    ]
    assert sum(each.startswith("unembed.weight ") for each in lines) == 3
