"""The table for a paper, letter by letter."""

from isoscope.display import READINGS, Results

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
left out: twonn: needs at least 3 distinct rows, got 2\par
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
