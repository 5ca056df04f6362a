"""Text for encoder-decoders: what the encoder reads, and what the decoder goes on with."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from isoscope.capture.feed.batch import Batch, Prepared
from isoscope.capture.feed.given import Given, Loaded
from isoscope.capture.feed.text import TextFeed, trial_tokens
from isoscope.capture.feed.tokens import Tokens
from isoscope.site import DECODER, ENCODER
from isoscope.types import Array


class PairFeed(TextFeed):
    """An encoder's and a decoder's tokens.

    With a target the encoder reads the document and the decoder the target; without one the
    encoder reads the first half of the document and the decoder the second. The decoder's
    first token is the one that the model starts with, and is special.
    """

    def __init__(self, loaded: Loaded, *, length: int, prompt: str | None) -> None:
        self.start = start_token(loaded)
        super().__init__(loaded, length=length, prompt=prompt)

    def prepare(self, document: Given) -> Prepared | None:
        """Return both sides of a document, or None if either has no ordinary token."""
        tokens = self.reader.read(document)
        if document.target and document.target.strip():
            target = self.reader.read_text(document.target)
            start, end = target.ends()
            later, over = target.ids[start:end], target.truncated
        else:
            tokens, later = halves(tokens)
            over = tokens.truncated
        if not tokens.measurable or not len(later):
            return None
        return self.of_sides(document.id, tokens, later, over)

    def of_sides(self, name: str, tokens: Tokens, later: Array, over: bool) -> Prepared:
        """Return the encoder's tokens and the decoder's made ready."""
        room = self.reader.limit - 1
        ids = np.concatenate([[self.start], later[:room]]).astype(np.int64)
        special = np.isin(ids, self.reader.special)
        special[0] = True
        return Prepared(
            name,
            {"input_ids": tokens.ids, "decoder_input_ids": ids},
            length=len(tokens.ids),
            cost=len(tokens.ids) + len(ids),
            truncated=tokens.truncated or over or len(later) > room,
            special={ENCODER: tokens.special, DECODER: special},
        )

    def joined(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the padded batch of both sides."""
        inputs, encoder = self.side(prepared, ENCODER, "input_ids", "attention_mask")
        more, decoder = self.side(
            prepared, DECODER, "decoder_input_ids", "decoder_attention_mask"
        )
        documents = tuple(each.id for each in prepared)
        return Batch(inputs | more, documents, {ENCODER: encoder, DECODER: decoder})

    def trial(self, count: int) -> Prepared:
        """Return a document with so many tokens on the encoder's side, as on the decoder's."""
        tokens = trial_tokens(self.reader, count)
        return self.of_sides("", tokens, tokens.ids, False)


def halves(tokens: Tokens) -> tuple[Tokens, Array]:
    """Return the first half, special tokens around it as they were, and the ids of the second.

    Of an odd number of tokens the encoder has the one in the middle.
    """
    start, end = tokens.ends()
    middle = start + -(-(end - start) // 2)
    kept = np.r_[0:middle, end : len(tokens.ids)]
    return tokens.only(kept), tokens.ids[middle:end]


def start_token(loaded: Loaded) -> int:
    """Return the token that a decoder's input starts with."""
    config: Any = getattr(loaded.body, "config", None)
    generation: Any = getattr(loaded.model, "generation_config", None)
    for name in ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id"):
        for holder in (config, generation):
            value = getattr(holder, name, None)
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, int):
                return value
    return 0
