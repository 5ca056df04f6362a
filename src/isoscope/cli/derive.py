"""What help pages and documentation say of an option, and the page of all options.

`python -m isoscope.cli.options` prints the page; `make derive` writes it to docs/options.md.
"""

import sys
from collections.abc import Iterable
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from isoscope.study.experiment import Experiment
    from isoscope.study.option import Option

LARGE = 2**53  # bounds beyond it keep numbers representable; nobody meets them
KINDS: dict[object, str] = {int: "whole number", float: "number", str: "text", bool: "switch"}
HEAD = """# Options

<!-- Written by `make derive`, from the specs: edit those. -->

All options of the commands that compute something. Flags without the hyphens in front are
the keys of a `--config` file; keywords are those of the Python function of the same name. Every
value is checked by the same spec, whichever way it comes.
"""


def default_text(option: "Option") -> str:
    """Return how the default is shown; "" where there is none to speak of."""
    if option.about.default:
        return option.about.default
    if option.required or option.default is None or option.default is False:
        return ""
    if isinstance(option.default, tuple):
        return ("," if option.about.commas else ", ").join(map(_word, option.default))
    return str(option.default)


def bounds_text(option: "Option") -> str:
    """Return the bounds of a number, such as `x>=1`; "" where there are none."""
    least, most = option.about.least, option.about.most
    low = "" if least is None else f"{_number(option, least)}"
    high = "" if most is None or most >= LARGE else f"{_number(option, most)}"
    if low and high:
        return f"{low}<=x<={high}"
    return f"x>={low}" if low else f"x<={high}" if high else ""


def extra_text(option: "Option") -> str:
    """Return what stands in brackets behind the help line."""
    default = default_text(option)
    parts = [f"default: {default}" if default else "", bounds_text(option)]
    parts += ["required"] if option.required else []
    text = "; ".join(part for part in parts if part)
    return f"  [{text}]" if text else ""


def page() -> str:
    """Return docs/options.md."""
    from isoscope.study.experiment import built_in

    return HEAD + "".join(f"\n{_section(each)}" for each in built_in())


def _section(experiment: "Experiment") -> str:
    from isoscope.study.option import named_options

    options = [*experiment.spec.options().values(), *named_options(experiment.where).values()]
    options.sort(key=lambda option: not option.about.argument)
    head = ("flag", "keyword", "type", "default", "bounds", "help")
    lines = [_row(head), _row(["---"] * len(head)), *map(_row, map(_cells, options))]
    return f"## {experiment.name}\n\n" + "".join(f"{line}\n" for line in lines)


def _cells(option: "Option") -> list[str]:
    default = "*required*" if option.required else default_text(option)
    return [
        f"`{_flags(option)}`",
        f"`{option.name}`",
        _kind(option),
        default,
        bounds_text(option).replace("<", "&lt;").replace(">", "&gt;"),
        option.about.help,
    ]


def _flags(option: "Option") -> str:
    if option.about.argument:
        return option.about.metavar
    names = option.about.flag.replace("/", ", ") or f"--{option.flag}"
    return f"{names} {option.about.metavar}".rstrip()


def _kind(option: "Option") -> str:
    words = option.words
    kind = ", ".join(map(str, words)) if words else KINDS.get(option.plain, "text")
    kind = f"{kind}; several" if option.many else kind
    none = NoneType in get_args(option.type) and option.default is not None
    return f"{kind}; or none" if none and not option.required else kind


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(option: "Option", value: float) -> float | int:
    return int(value) if option.plain is int else float(value)


if __name__ == "__main__":
    sys.stdout.write(page())
