"""Feeds of text: for one stack, for characters (canine), for encoder-decoders."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.capture.feed.base import (
    Batch,
    Feed,
    PositionLayout,
    Prepared,
    TokenLayout,
    config_of,
    molecule_marks,
    pad_rows,
    pads_to_windows,
    parameters,
    within,
)
from isoscope.capture.feed.reader import TokenReader, TokenSequence
from isoscope.capture.model.folder import first_pass
from isoscope.capture.model.load import Loaded
from isoscope.capture.tap import first_tensor
from isoscope.site import DECODER, ENCODER
from isoscope.types import Array, Document


class TextFeed(Feed):
    """One stack that reads tokens.

    Padding is on the right with a mask, so that positions count from the first token
    whatever a document stands beside, and causal models never see it.
    """

    multiple = 1  # what the padded length is rounded up to: characters of a molecule

    def __init__(
        self, loaded: Loaded, *, length: int, prompt: str | None, bos: bool = True
    ) -> None:
        super().__init__(loaded.body)
        self.reader = TokenReader(loaded, length=length, prompt=prompt, bos=bos)
        self.accepted = parameters(loaded.body)
        self.prompt_length = self.reader.prompt_length()
        self.mixes_lengths = True
        with first_pass(loaded.name):
            self.mixes_lengths = self.pads_safely()

    def prepare(self, document: Document) -> Prepared | None:
        """Return the tokens of a document, or None for fewer than two, or special ones only."""
        tokens = self.reader.read(document)
        return self.of_tokens(document.id, tokens) if tokens.measurable else None

    def of_tokens(self, name: str, tokens: TokenSequence) -> Prepared:
        """Return tokens made ready."""
        inputs = {"input_ids": tokens.ids}
        if tokens.types is not None:
            inputs["token_type_ids"] = tokens.types
        count = len(tokens.ids)
        return Prepared(name, inputs, count, count, tokens.truncated, {"": tokens.special})

    def collate(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the padded batch."""
        inputs, layout = self.side(prepared, "", "input_ids", "attention_mask")
        if all("token_type_ids" in each.inputs for each in prepared):
            inputs["token_type_ids"] = self.column(prepared, "token_type_ids")
        return Batch(inputs, tuple(each.id for each in prepared), {"": layout})

    def side(
        self, prepared: Sequence[Prepared], stack: str, name: str, mask: str
    ) -> tuple[dict[str, Tensor], PositionLayout]:
        """Return the inputs of one stack, and the layout of its positions."""
        tokens = self.column(prepared, name, fill=self.reader.pad)
        counts = [len(each.inputs[name]) for each in prepared]
        real = within(counts, tokens.shape[1], self.device)
        rows = [each.special[stack] for each in prepared]
        special = pad_rows(rows, multiple=self.multiple, device=self.device)
        inputs = {name: tokens}
        if mask in self.accepted:
            inputs[mask] = real.long()
        lengthened = pads_to_windows(self.reader.config)
        layout = TokenLayout(real, special, tokens, lengthened)
        if self.multiple == 1:
            return inputs, layout
        return inputs, partial(molecule_marks, layout, self.multiple)

    def column(self, prepared: Sequence[Prepared], name: str, fill: int = 0) -> Tensor:
        """Return one input of all documents, padded."""
        rows = [each.inputs[name] for each in prepared]
        return pad_rows(rows, fill=fill, multiple=self.multiple, device=self.device)

    def pads_safely(self) -> bool:
        """Whether documents of different lengths may stand side by side in this model."""
        size = min(12, self.reader.limit)
        long, short = (self.trial(each) for each in (size, max(1, size // 2)))
        return padding_is_harmless(
            self.body, self.collate([short]), self.collate([short, long])
        )

    def trial(self, count: int) -> Prepared:
        """Return a document of `count` tokens."""
        return self.of_tokens("", trial_tokens(self.reader, count))


class CharacterFeed(TextFeed):
    """Canine: characters that reach the deep stack as molecules.

    Always padded to whole molecules, alone too: the model drops what is left over, and the
    number of molecules of a document would depend on its company.
    """

    def __init__(
        self, loaded: Loaded, *, length: int, prompt: str | None, bos: bool = True
    ) -> None:
        self.multiple = int(config_of(loaded.body).downsampling_rate)
        super().__init__(loaded, length=length, prompt=prompt, bos=bos)

    def of_tokens(self, name: str, tokens: TokenSequence) -> Prepared:
        """Return characters made ready; molecules are what counts."""
        ready = super().of_tokens(name, tokens)
        molecules = -(-len(tokens.ids) // self.multiple)
        cost = molecules * self.multiple
        return Prepared(name, ready.inputs, molecules, cost, ready.truncated, ready.special)

    def prepare(self, document: Document) -> Prepared | None:
        """Return the characters of a document; None if they make fewer than two molecules."""
        ready = super().prepare(document)
        return None if ready is None or ready.length < 2 else ready

    def pads_safely(self) -> bool:
        """Whether padding is harmless: to molecules yes; the last characters it may reach."""
        return True


def trial_tokens(reader: TokenReader, count: int) -> TokenSequence:
    """Return tokens to try a model with: different ones, none special if it can be helped."""
    known = reader.vocabulary or 128
    ordinary = np.setdiff1d(np.arange(min(known, 512)), reader.special)
    pool = ordinary if len(ordinary) else np.arange(known)
    ids = np.resize(pool[5:] if len(pool) > 5 + count else pool, count).astype(np.int64)
    return TokenSequence(ids, np.zeros(count, dtype=bool), None, False)


def trial_inputs(loaded: Loaded, count: int = 16) -> dict[str, Tensor]:
    """Return a few tokens as the model takes them."""
    reader = TokenReader(loaded, length=count)
    ids = torch.from_numpy(trial_tokens(reader, reader.limit).ids)[None]
    inputs = {"input_ids": ids}
    if "attention_mask" in parameters(loaded.body):
        inputs["attention_mask"] = torch.ones_like(ids)
    return inputs


class PairFeed(TextFeed):
    """An encoder's and a decoder's tokens.

    With a target the encoder reads the document and the decoder the target; without one the
    encoder reads the first half of the document and the decoder the second. The decoder's
    first token is the one that the model starts with, and is special.
    """

    def __init__(
        self, loaded: Loaded, *, length: int, prompt: str | None, bos: bool = True
    ) -> None:
        self.start = start_token(loaded)
        super().__init__(loaded, length=length, prompt=prompt, bos=bos)

    def prepare(self, document: Document) -> Prepared | None:
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

    def of_sides(self, name: str, tokens: TokenSequence, later: Array, over: bool) -> Prepared:
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

    def collate(self, prepared: Sequence[Prepared]) -> Batch:
        """Return the padded batch of both sides."""
        inputs, encoder = self.side(prepared, ENCODER, "input_ids", "attention_mask")
        more, decoder = self.side(
            prepared, DECODER, "decoder_input_ids", "decoder_attention_mask"
        )
        documents = tuple(each.id for each in prepared)
        return Batch(inputs | more, documents, {ENCODER: encoder, DECODER: decoder})

    def trial(self, count: int) -> Prepared:
        """Return a document with `count` tokens on both sides."""
        tokens = trial_tokens(self.reader, count)
        return self.of_sides("", tokens, tokens.ids, False)


def halves(tokens: TokenSequence) -> tuple[TokenSequence, Array]:
    """Return the first half, special tokens around it as they were, and the ids of the second.

    Of an odd number of tokens the encoder has the one in the middle.
    """
    start, end = tokens.ends()
    middle = start + -(-(end - start) // 2)
    kept = np.r_[0:middle, end : len(tokens.ids)]
    return tokens.only(kept), tokens.ids[middle:end]


def start_token(loaded: Loaded) -> int:
    """Return the token that a decoder's input starts with."""
    holders = config_of(loaded.body), getattr(loaded.model, "generation_config", None)
    names = ("decoder_start_token_id", "bos_token_id", "eos_token_id", "pad_token_id")
    values = [getattr(holder, name, None) for name in names for holder in holders]
    firsts = (each[0] if isinstance(each, list) and each else each for each in values)
    return next((each for each in firsts if isinstance(each, int)), 0)


# What a model of transformers returns.
OUTPUTS = ("last_hidden_state", "encoder_last_hidden_state")


def padding_is_harmless(body: nn.Module, alone: Batch, padded: Batch) -> bool:
    """Whether the first document reads the same alone and beside a longer one.

    Signatures do not show it: mamba ignores a mask and needs none, fnet mixes all
    positions and has none. The bound is the square root of the type's rounding, which is far
    above rounding and far below what half a row of padding does.
    """
    training = body.training
    body.eval()
    try:
        with torch.no_grad():
            one, two = _hidden(body(**alone.inputs)), _hidden(body(**padded.inputs))
    finally:
        body.train(training)
    return all(_agree(a[0], b[0, : a.shape[1]]) for a, b in zip(one, two, strict=True))


def _hidden(output: object) -> list[Tensor]:
    found = [getattr(output, name, None) for name in OUTPUTS]
    tensors = [each for each in found if isinstance(each, Tensor)]
    first = first_tensor(output)
    return tensors or ([] if first is None else [first])


def _agree(one: Tensor, two: Tensor) -> bool:
    if one.shape != two.shape:
        return False
    if not bool(one.isfinite().all()):
        return True  # a model that has diverged: padding is not to blame
    bound = torch.finfo(one.dtype).eps ** 0.5
    return bool((one - two).float().norm() <= bound * one.float().norm())
