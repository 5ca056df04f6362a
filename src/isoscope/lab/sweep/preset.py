"""Known tasks: where their files keep texts and labels, and what they are judged by."""

from dataclasses import dataclass

from isoscope.lab.sweep.task import Kind
from isoscope.registry import Registry


@dataclass(frozen=True, slots=True)
class Columns:
    """Names of columns, or their numbers from 0 in a file without a header."""

    text: str
    target: str
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class Preset:
    """A task: its kind, its metric, and the layouts its files are known in."""

    kind: Kind
    metric: str
    layouts: tuple[Columns, ...]
    bins: int = 0  # labels made of scores from 0 to 1, so many of equal width


PRESETS: Registry[Preset] = Registry("task")


def _pair(first: str, second: str, *targets: str) -> tuple[Columns, ...]:
    return tuple(Columns(first, target, second) for target in targets)


_SENTENCE = (Columns("sentence", "label"), Columns("text", "label"), Columns("0", "1"))
PRESETS.add("sst2", Preset("label", "accuracy", _SENTENCE))
PRESETS.add("sst5", Preset("label", "accuracy", _SENTENCE, bins=5))
PRESETS.add(
    "cola",
    Preset("label", "matthews", (Columns("sentence", "label"), Columns("3", "1"))),
)
PRESETS.add(
    "mrpc",
    Preset(
        "label",
        "accuracy",
        (
            *_pair("#1 String", "#2 String", "Quality"),
            *_pair("sentence1", "sentence2", "label"),
        ),
    ),
)
PRESETS.add("rte", Preset("label", "accuracy", _pair("sentence1", "sentence2", "label")))
PRESETS.add("qnli", Preset("label", "accuracy", _pair("question", "sentence", "label")))
PRESETS.add(
    "qqp",
    Preset("label", "accuracy", _pair("question1", "question2", "is_duplicate", "label")),
)
PRESETS.add(
    "stsb",
    Preset(
        "score",
        "spearman",
        (*_pair("sentence1", "sentence2", "score", "label"), *_pair("0", "1", "2")),
    ),
)
PRESETS.add("squad", Preset("span", "span-f1", (Columns("context", "answers", "question"),)))
