"""Names from files are shown, never obeyed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isoscope.escape import for_html, for_latex, for_markdown, plain


@given(st.text(st.characters()))
def test_plain_text_can_always_be_printed_and_encoded(text):
    shown = plain(text)
    assert shown.isprintable()
    shown.encode("utf-8")


@pytest.mark.parametrize("text", ["resid.3", "Müller's «notes»", "日本", "a b", ""])
def test_ordinary_names_stay_as_they_are(text):
    assert plain(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\r\nb", r"a\r\nb"),
        ("\x9b31m", r"\x9b31m"),  # the one-byte form of ESC [
        ("\u202egpj.exe", r"\u202egpj.exe"),  # turns the reading direction
        ("\udcff", r"\udcff"),  # a byte of a file name that is not UTF-8
        ("no\u00a0break", "no break"),
    ],
)
def test_control_characters_are_written_out(text, shown):
    assert plain(text) == shown


def test_html_is_escaped_in_text_and_in_attributes():
    assert for_html("<b title=\"x\" lang='y'>&") == (
        "&lt;b title=&quot;x&quot; lang=&#x27;y&#x27;&gt;&amp;"
    )


def test_latex_knows_no_command_of_ours():
    shown = for_latex(r"\input{/etc/passwd} $x_1^2$ 50% #1 & ~ [a]")
    assert shown == (
        r"\textbackslash{}input\{/etc/passwd\} \$x\_1\textasciicircum{}2\$ 50\% \#1 \& "
        r"\textasciitilde{} {[}a{]}"
    )


def test_markdown_neither_breaks_its_cell_nor_becomes_a_tag():
    assert for_markdown("a|b <img> *c* `d` [e](f)") == (
        r"a\|b &lt;img&gt; \*c\* \`d\` \[e\](f)"
    )
