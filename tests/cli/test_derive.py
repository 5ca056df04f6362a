"""What is said of options, and the page of all of them."""

from pathlib import Path
from typing import Annotated

import pytest

from isoscope.cli.command import bounds_text, default_text, extra_text
from isoscope.cli.derive import files, page
from isoscope.study.experiment import built_in
from isoscope.study.option import Part, about, named_options

ROOT = Path(__file__).parents[2]


class Paint(Part, frozen=True, kw_only=True):
    what: Annotated[str, about("What.", "WHAT", argument=True)]
    coats: Annotated[int, about("Coats.", "N", least=1)] = 2
    thin: Annotated[float, about("Thinner.", "X", least=0.0, most=1.0)] = 0.5
    most: Annotated[int | None, about("At most.", "N", most=9)] = None
    seed: Annotated[int, about("Seed.", "N", least=0, most=2**63 - 1)] = 0
    weights: Annotated[tuple[float, ...], about("Weights.", "W,W", commas=True)] = (-1.0, 2.5)
    colours: Annotated[tuple[str, ...], about("A colour.", "C")] = ("red", "blue")
    brush: Annotated[str | None, about("A brush", "B", default="the painter's own")] = None
    fast: Annotated[bool, about("Be fast.")] = False


OPTIONS = named_options(Paint)


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("what", ""),
        ("coats", "  [default: 2; x>=1]"),
        ("thin", "  [default: 0.5; 0.0<=x<=1.0]"),
        ("most", "  [x<=9]"),
        ("seed", "  [default: 0; x>=0]"),
        ("weights", "  [default: -1,2.5]"),
        ("colours", "  [default: red, blue]"),
        ("brush", "  [default: the painter's own]"),
        ("fast", ""),
    ],
)
def test_defaults_and_bounds_stand_behind_the_help_line(name, extra):
    assert extra_text(OPTIONS[name]) == extra


def test_the_page_has_every_option_of_every_command():
    text = page()
    for experiment in built_in():
        section = text.partition(f"\n## {experiment.name}\n")[2].partition("\n## ")[0]
        options = {**experiment.spec.options(), **named_options(experiment.where)}
        rows = section.strip().splitlines()[2:]
        assert len(rows) == len(options)
        for name, option in options.items():
            (row,) = [row for row in rows if f"| `{name}` |" in row]
            assert option.about.help.replace("|", "\\|") in row
            assert default_text(option) in row
            assert bounds_text(option).replace(">", "&gt;").replace("<", "&lt;") in row


def test_the_page_in_the_documentation_is_up_to_date():
    written = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert written == page(), "run make derive"


def test_the_page_of_files_is_up_to_date_and_names_every_module():
    written = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    assert written == files(), "run make derive"
    source = ROOT / "src" / "isoscope"
    modules = [path for path in source.rglob("*.py") if path.stat().st_size]
    assert written.count("\n- `") == len(modules) > 200
