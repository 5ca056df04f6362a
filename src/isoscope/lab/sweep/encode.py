"""Examples as tokens: texts and pairs as a model reads them, and answers as places in them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import numpy as np

from isoscope.capture.feed import Prepared, feed_for
from isoscope.capture.feed.reader import TokenSequence
from isoscope.capture.feed.text import TextFeed
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.lab.sweep.task import Example, Span, SweepTask
from isoscope.study.model import ModelSites
from isoscope.types import Array

if TYPE_CHECKING:
    from transformers import BatchEncoding, PreTrainedTokenizerBase

BETWEEN = "\n"  # stands between two texts where a tokenizer has no token for that


@dataclass(frozen=True)
class Encoded:
    """Examples as tokens, in their order, with their targets."""

    prepared: list[Prepared]
    targets: Array  # (n,) classes or scores, or (n, 2) first and last token of the answer
    offsets: list[Array]  # of spans: (tokens, 2) characters; (-1, -1) outside of the text
    examples: list[Example]

    def __len__(self) -> int:
        return len(self.prepared)

    @property
    def lengths(self) -> Array:
        """The number of tokens of each, (n,)."""
        return np.array([each.length for each in self.prepared])

    def select(self, places: Sequence[int]) -> "Encoded":
        """Return some of the examples."""
        return Encoded(
            [self.prepared[i] for i in places],
            self.targets[list(places)],
            [self.offsets[i] for i in places] if self.offsets else [],
            [self.examples[i] for i in places],
        )


class Encoder:
    """Makes tokens of examples for one model, at most `length` of each."""

    def __init__(self, subject: ModelSites, length: int) -> None:
        feed = (
            feed_for(subject.loaded, length=length) if subject.loaded.takes == "text" else None
        )
        if not isinstance(feed, TextFeed) or type(feed) is not TextFeed:
            raise ConfigError(
                f"expected a text model with one stack of layers, got {subject.loaded.name}",
                hint="encoders such as BERT and decoders such as GPT-2 can be fine-tuned here",
                slug="sweep-model",
            )
        if feed.reader.tokenizer is None:
            raise ConfigError(
                "expected a tokenizer in the model's folder, got none",
                hint="save the tokenizer beside the weights",
                slug="tokenizer-missing",
            )
        self.feed = feed
        self.tokenizer = cast("PreTrainedTokenizerBase", feed.reader.tokenizer)

    def encode(self, task: SweepTask, examples: Sequence[Example]) -> Encoded:
        """Return examples as tokens; those of spans whose answer was cut off keep (-1, -1)."""
        found = [self._one(task, each, n) for n, each in enumerate(examples)]
        prepared = [each for each, _, _ in found]
        if task.kind == "span":
            targets = np.array([place for _, place, _ in found], dtype=np.int64).reshape(-1, 2)
            offsets = [each for _, _, each in found]
        else:
            targets, offsets = task.numbers(examples), []
        return Encoded(prepared, targets, offsets, list(examples))

    def _one(
        self, task: SweepTask, example: Example, number: int
    ) -> tuple[Prepared, tuple[int, int], Array]:
        span = task.kind == "span"
        encoding = self._tokenize(example, offsets=span)
        ids = np.asarray(encoding["input_ids"], dtype=np.int64)
        special = np.asarray(encoding["special_tokens_mask"], dtype=bool)
        found = encoding.get("token_type_ids", np.zeros_like(ids))
        types = np.asarray(found, dtype=np.int64) if self.feed.reader.takes_types else None
        tokens = TokenSequence(ids, special, types, len(ids) >= self.feed.reader.limit)
        place, offsets = (0, 0), np.zeros((0, 2), dtype=np.int64)
        if span:
            offsets = _offsets(encoding, second=example.pair is not None)
            place = _place(example.span, offsets)
        return self.feed.of_tokens(f"example:{number}", tokens), place, offsets

    def _tokenize(self, example: Example, *, offsets: bool) -> "BatchEncoding":
        # In spans the question comes first, and the text is what is cut.
        first, second = (example.text, example.pair)
        if offsets and second is not None:
            first, second = second, first
        if self.feed.reader.lower:
            first, second = first.lower(), None if second is None else second.lower()
        parts_pairs = getattr(self.tokenizer, "sep_token", None) is not None
        if second is not None and not offsets and not parts_pairs:
            first, second = f"{first}{BETWEEN}{second}", None
        cut = "only_second" if offsets and second is not None else "longest_first"
        try:
            return self.tokenizer(
                _whole(first),
                None if second is None else _whole(second),
                truncation=cut,
                max_length=self.feed.reader.limit,
                padding=False,
                return_special_tokens_mask=True,
                return_offsets_mapping=offsets,
                verbose=False,
            )
        except NotImplementedError as error:  # no offsets without a fast tokenizer
            raise ConfigError(
                f"cannot find answers in the tokens of {type(self.tokenizer).__name__}",
                hint="save the fast tokenizer (tokenizer.json) beside the weights",
                slug="sweep-model",
            ) from error


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _offsets(encoding: "BatchEncoding", *, second: bool) -> Array:
    """Return the characters of each token of the text; (-1, -1) for all other tokens."""
    offsets = np.asarray(encoding["offset_mapping"], dtype=np.int64).reshape(-1, 2)
    sequence = np.array([-1 if s is None else s for s in encoding.sequence_ids()])
    offsets[sequence != int(second)] = -1
    return offsets


def _place(span: Span, offsets: Array) -> tuple[int, int]:
    """Return the first and last token of an answer; (-1, -1) where it was cut off."""
    inside = (offsets[:, 1] > span.start) & (offsets[:, 0] < span.end) & (offsets[:, 0] >= 0)
    places = np.flatnonzero(inside)
    if not len(places) or offsets[places[-1], 1] < span.end:
        return -1, -1
    return int(places[0]), int(places[-1])
