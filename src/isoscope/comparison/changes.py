"""Changes between two runs as tables, and their summary."""

from collections import Counter
from collections.abc import Sequence

from isoscope.comparison.effect import NEGLIGIBLE
from isoscope.display import (
    DATA,
    Column,
    Field,
    RecordLayout,
    Results,
    Table,
    format_value,
    line_of,
    non_empty,
    numbers,
    plain,
    texts,
    warning_column,
)
from isoscope.types import Change

VERDICTS = ("changed", "negligible", "within noise", "same", "no interval")


def changes_of(
    changes: Sequence[Change],
    *,
    runs: tuple[str, str] = ("a", "b"),
    negligible: float = NEGLIGIBLE,
    method: str = "",
    depths: str = "",
    differs: Sequence[str] = (),
    left_out: Sequence[str] = (),
) -> Results[Change]:
    """Return changes between two runs, with remarks on how they were compared.

    `method` says whether they are paired and why, `depths` where the depth of a model is not
    known, `differs` lists differing settings.
    """
    differences = f"the runs differ in {'; '.join(differs)}" if differs else ""
    return Results(
        changes,
        CHANGES,
        remarks=filter(None, (method, depths, differences)),
        left_out=left_out,
        shared={"run_a": runs[0], "run_b": runs[1], "negligible_below": negligible},
    )


def summary(changes: Results[Change]) -> str:
    """Return the number of changes of each verdict, as a sentence."""
    counts = Counter(each.verdict for each in changes)
    parts = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    tested = sum(each.chance is not None for each in changes)
    rule = f"changed: p < 0.05 after Holm's correction over {tested} rows"
    if counts["negligible"]:
        share = changes.shared["negligible_below"]
        assert isinstance(share, float | int)
        limit = f"{100 * share:g}"
        rule += f"; negligible: so too, with the whole interval below {limit} % of the scale"
    return f"{', '.join(parts)} of {len(changes)} ({rule}; the intervals are not corrected)"


def effect_of(changes: Sequence[Change]) -> str:
    """Return what the effects are per cent of, as a sentence; measures differ in that."""
    relative = any(_is_relative(each) for each in changes)
    whole = [name for name in dict.fromkeys(e.measure for e in changes if not _is_relative(e))]
    larger = "of the larger of a and b"
    if not whole:
        return f"effect: b - a in % {larger}"
    points = "of 1, the range of the measure, that is in points"
    if not relative:
        return f"effect: b - a in % {points}"
    return f"effect: b - a in % {larger}; for {', '.join(whole)} in % {points}"


def _is_relative(change: Change) -> bool:
    return change.scale == max(abs(change.a), abs(change.b))


def _about(changes: Results[Change]) -> tuple[str, ...]:
    """Return the remarks on the comparison as a whole."""
    return (*([summary(changes), effect_of(changes)] if changes else []), *changes.remarks)


def _notes(changes: Results[Change], style: str) -> tuple[str, ...]:
    if style not in DATA:
        return ()
    return (*_about(changes), *(f"skipped: {text}" for text in changes.left_out))


def _tables(changes: Results[Change]) -> tuple[Table, ...]:
    notes = tuple(map(plain, _about(changes)))
    left_out = tuple(map(plain, changes.left_out))
    if not changes:
        return (Table("", (), (), left_out, notes),)
    warnings = tuple(dict.fromkeys(text for each in changes for text in each.warnings))
    columns = non_empty(_columns(changes, warnings))
    return (Table(_caption(changes), columns, tuple(map(plain, warnings)), left_out, notes),)


def _caption(changes: Results[Change]) -> str:
    first = changes[0]
    shared = [f"a: {changes.shared['run_a']}", f"b: {changes.shared['run_b']}"]
    if len({each.site for each in changes}) == 1:
        shared.append(f"site {first.site}")
    return plain(", ".join([*shared, f"variant {first.variant}"]))


def _percent(effect: float) -> str:
    """Return an effect in percent, with its sign and two digits."""
    percent = 100 * effect
    return f"{percent:+.2f}" if abs(percent) >= 1 else f"{percent:+.2g}"


def _columns(changes: Sequence[Change], warnings: Sequence[str]) -> tuple[Column, ...]:
    several = len({each.site for each in changes}) > 1
    by_depth = any(each.site != each.other_site for each in changes)
    sites = [each.site if several or by_depth else "" for each in changes]
    others = [each.other_site if by_depth else "" for each in changes]
    steps = ["" if each.step is None else str(each.step) for each in changes]
    first = [format_value(each.a, each.a_low, each.a_high)[0] for each in changes]
    second = [format_value(each.b, each.b_low, each.b_high)[0] for each in changes]
    gaps = [format_value(each.difference, each.low, each.high) for each in changes]
    how = ["paired" if each.paired else "independent" for each in changes]
    return (
        Column("site", tuple(map(plain, sites)), words=True, fold=12),
        Column("site of b", tuple(map(plain, others)), words=True),
        Column("step", tuple(steps)),
        Column("measure", tuple(plain(e.measure) for e in changes), words=True, role="name"),
        Column("a", tuple(first)),
        Column("b", tuple(second)),
        Column("b - a", tuple(value for value, _ in gaps)),
        Column("95 % interval", tuple(interval for _, interval in gaps)),
        Column("effect, %", tuple(_percent(each.effect) for each in changes)),
        Column("verdict", tuple(each.verdict for each in changes), words=True, fold=8),
        Column("how", tuple(how if len(set(how)) > 1 else [""] * len(how)), words=True),
        warning_column((each.warnings for each in changes), warnings),
    )


CHANGES = RecordLayout(
    name="changes",
    tables=_tables,
    to_dict=line_of,
    fields=(
        *texts("run_a", "run_b"),
        Field("negligible_below", "number"),
        *texts("site", "other_site", "variant"),
        Field("step", "integer", optional=True),
        Field("measure"),
        *numbers("a", "a_low", "a_high", "b", "b_low", "b_high", "difference", "low", "high"),
        Field("paired", "flag"),
        *numbers("chance", "effect", "scale"),
        Field("verdict"),
        Field("warnings", "texts", joined=True),
    ),
    summary=summary,
    notes=_notes,
)
