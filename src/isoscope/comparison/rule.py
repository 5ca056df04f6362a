"""The rules of a check: `measure@site/variant > number`, or `< 0.9x` of a baseline."""

import re
from fnmatch import fnmatchcase
from math import isfinite

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.measures import MEASURES
from isoscope.registry import check_names
from isoscope.types import VARIANTS

SIGNS = (">", ">=", "<", "<=")
_SIGN = re.compile(r"[<>=!]+")
EXAMPLE = "write it like 'mean-cosine@norm.out > 0.5' or 'isoscore < 0.9x'"


@dataclass(frozen=True)
class GateRule:
    """A measure beyond a number, or beyond a multiple of the baseline: the check fails."""

    text: str
    measure: str
    site: str  # a pattern; * for any
    variant: str
    sign: str
    number: float
    relative: bool

    def covers(self, site: str) -> bool:
        """Whether the rule applies to a site."""
        return fnmatchcase(site, self.site)

    def beyond(self, margin: float) -> bool:
        """Whether a value this far above the limit meets the condition."""
        if margin == 0:
            return self.sign.endswith("=")
        return (margin > 0) == self.sign.startswith(">")


def parse_rule(text: str) -> GateRule:
    """Parse a rule, or raise an error that says what is wrong with it."""
    signs = _SIGN.findall(text)
    if len(signs) != 1:
        got = " and ".join(map(repr, signs)) or "none"
        raise _syntax_error(f"expected one comparison in the rule {text!r}, got {got}")
    sign = signs[0]
    if sign not in SIGNS:
        raise _syntax_error(f"expected >, >=, < or <= in the rule {text!r}, got {sign!r}")
    what, _, number = (part.strip() for part in text.partition(sign))
    if not what:
        raise _syntax_error(f"expected a measure before {sign!r} in {text!r}, got none")
    measure, site, variant = _parse_name(what, text)
    value, relative = _parse_number(number, text)
    return GateRule(text.strip(), measure, site, variant, sign, value, relative)


def known_measures() -> dict[str, str]:
    """Return every name a rule may use, and the measure that computes it."""
    known = {name: name for name in MEASURES}
    for record in MEASURES.values():
        known |= {f"{record.name}-{suffix}": record.name for suffix in record.beside}
    return known


def _parse_name(what: str, text: str) -> tuple[str, str, str]:
    """Return the measure, site and variant before the sign."""
    measure, at, site = (part.strip() for part in what.partition("@"))
    variant = "all"
    holder = site if at else measure
    if "/" in holder:
        holder, _, variant = (part.strip() for part in holder.rpartition("/"))
        check_names("variant", [variant], VARIANTS)
        measure, site = (measure, holder) if at else (holder, site)
    if at and not site:
        raise _syntax_error(f"expected a site after '@' in {text!r}, got none")
    check_names("measure", [measure], known_measures())
    return measure, site or "*", variant


def _parse_number(number: str, text: str) -> tuple[float, bool]:
    relative = number.endswith("x")
    try:
        value = float(number.removesuffix("x"))
    except ValueError:
        value = float("nan")
    if not isfinite(value) or "_" in number:
        raise ConfigError(
            f"expected a number after the sign in {text!r}, got {number!r}",
            hint=f"{EXAMPLE}; x means times the baseline",
            slug="rule-number",
        )
    if relative and value <= 0:
        raise ConfigError(
            f"expected more than 0 times the baseline in {text!r}, got {number!r}",
            hint="0.9x is nine tenths of the baseline, 1.1x a tenth more",
            slug="rule-number",
        )
    return value, relative


def _syntax_error(problem: str) -> ConfigError:
    return ConfigError(problem, hint=EXAMPLE, slug="rule-unreadable")
