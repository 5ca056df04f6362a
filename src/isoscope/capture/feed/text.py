"""Text and tokens for encoders and decoders, canine's characters among them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isoscope.capture.feed.base import Feed, parameters
from isoscope.capture.feed.batch import Batch, Layout, Prepared
from isoscope.capture.feed.given import Given, Loaded
from isoscope.capture.feed.layout import MoleculeLayout, TokenLayout, windowed, within
from isoscope.capture.feed.pad import stacked
from isoscope.capture.feed.probe import padding_is_harmless
from isoscope.capture.feed.tokens import Reader, Tokens


class TextFeed(Feed):
    """One stack that reads tokens.

    Padding is on the right with a mask, so that positions count from the first token
    whatever a document stands beside, and causal models never see it.
    """

    multiple = 1  # what the padded length is rounded up to

    def __init__(self, loaded: Loaded, *, length: int, prompt: str | None) -> None:
        super().__init__(loaded.body)
        self.reader = Reader(loaded, length=length, prompt=prompt)
        self.accepted = parameters(loaded.body)
        self.prompted = self.reader.prompted()
        self.mixes_lengths = True
        self.mixes_lengths = self.pads_safely()

    def prepare(self, document: Given) -> Prepared | None:
        """Return the tokens of a document, or None for fewer than two, or special ones only."""
        tokens = self.reader.read(document)
        return self.of_tokens(document.id, tokens) if tokens.measurable else None

    def of_tokens(self, name: str, tokens: Tokens) -> Prepared:
        """Return tokens made ready."""
        inputs = {"input_ids": tokens.ids}
        if tokens.types is not None:
            inputs["token_type_ids"] = tokens.types
        count = len(tokens.ids)
        return Prepared(name, inputs, count, count, tokens.truncated, {"": tokens.special})

    def joined(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the padded batch."""
        inputs, layout = self.side(prepared, "", "input_ids", "attention_mask")
        if all("token_type_ids" in each.inputs for each in prepared):
            inputs["token_type_ids"] = self.column(prepared, "token_type_ids")
        return Batch(inputs, tuple(each.id for each in prepared), {"": layout})

    def side(
        self, prepared: Sequence[Prepared], stack: str, name: str, mask: str
    ) -> tuple[dict[str, Tensor], Layout]:
        """Return the inputs of one stack, and the layout of its positions."""
        tokens = self.column(prepared, name, fill=self.reader.pad)
        counts = [len(each.inputs[name]) for each in prepared]
        real = within(counts, tokens.shape[1], self.device)
        rows = [each.special[stack] for each in prepared]
        special = stacked(rows, multiple=self.multiple, device=self.device)
        inputs = {name: tokens}
        if mask in self.accepted:
            inputs[mask] = real.long()
        lengthened = windowed(self.reader.config)
        return inputs, self.arranged(TokenLayout(real, special, tokens, lengthened))

    def arranged(self, layout: TokenLayout) -> Layout:
        """Return the layout that the blocks of the stack hear."""
        return layout

    def column(self, prepared: Sequence[Prepared], name: str, fill: int = 0) -> Tensor:
        """Return one input of all documents, padded."""
        rows = [each.inputs[name] for each in prepared]
        return stacked(rows, fill=fill, multiple=self.multiple, device=self.device)

    def pads_safely(self) -> bool:
        """Whether documents of different lengths may stand side by side in this model."""
        size = min(12, self.reader.limit)
        long, short = (self.trial(each) for each in (size, max(1, size // 2)))
        return padding_is_harmless(self.body, self.joined([short]), self.joined([short, long]))

    def trial(self, count: int) -> Prepared:
        """Return a document of so many tokens."""
        return self.of_tokens("", trial_tokens(self.reader, count))


class CharacterFeed(TextFeed):
    """Canine: characters that the deep stack hears in molecules.

    Always padded to whole molecules, alone too: the model drops what is left over, and the
    number of molecules of a document would depend on its company.
    """

    def __init__(self, loaded: Loaded, *, length: int, prompt: str | None) -> None:
        config: Any = loaded.body.config
        self.multiple = int(config.downsampling_rate)
        super().__init__(loaded, length=length, prompt=prompt)

    def of_tokens(self, name: str, tokens: Tokens) -> Prepared:
        """Return characters made ready; molecules are what counts."""
        ready = super().of_tokens(name, tokens)
        molecules = -(-len(tokens.ids) // self.multiple)
        cost = molecules * self.multiple
        return Prepared(name, ready.inputs, molecules, cost, ready.truncated, ready.special)

    def prepare(self, document: Given) -> Prepared | None:
        """Return the characters of a document; None if they make fewer than two molecules."""
        ready = super().prepare(document)
        return None if ready is None or ready.length < 2 else ready

    def arranged(self, layout: TokenLayout) -> Layout:
        """Return the layout of molecules."""
        return MoleculeLayout(layout, self.multiple)

    def pads_safely(self) -> bool:
        """Whether padding is harmless: to molecules yes; the last characters it may reach."""
        return True


def trial_tokens(reader: Reader, count: int) -> Tokens:
    """Return tokens to try a model with: different ones, none special if it can be helped."""
    known = reader.vocabulary or 128
    ordinary = np.setdiff1d(np.arange(min(known, 512)), reader.special)
    pool = ordinary if len(ordinary) else np.arange(known)
    ids = np.resize(pool[5:] if len(pool) > 5 + count else pool, count).astype(np.int64)
    return Tokens(ids, np.zeros(count, dtype=bool), None, False)


def trial_inputs(loaded: Loaded, count: int = 16) -> dict[str, Tensor]:
    """Return a few tokens as the model takes them."""
    reader = Reader(loaded, length=count)
    ids = torch.from_numpy(trial_tokens(reader, reader.limit).ids)[None]
    inputs = {"input_ids": ids}
    if "attention_mask" in parameters(loaded.body):
        inputs["attention_mask"] = torch.ones_like(ids)
    return inputs
