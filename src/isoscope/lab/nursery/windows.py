"""Texts as windows of token ids: of a corpus or a synthetic language, with a tokenizer."""

from collections.abc import Sequence
from dataclasses import field
from functools import cached_property
from hashlib import blake2b
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, SourceError
from isoscope.lab.nursery.language import Language
from isoscope.lab.nursery.spec import TrainSpec
from isoscope.source.corpus.corpus import Corpus
from isoscope.study.model import open_documents
from isoscope.types import Array

if TYPE_CHECKING:
    from tokenizers import Tokenizer

END, MASK, UNKNOWN = "<|endoftext|>", "[MASK]", "[UNK]"
SPECIAL = (END, MASK, UNKNOWN)  # tokens 0, 1 and 2 of every vocabulary
BYTES = 256
MASKED = 0.15  # of the tokens, where masked ones are predicted
HELD_OUT = 16_384  # tokens of held-out windows that a loss is computed on, at most
_HELD_OUT_SEED, _MASK_SEED, _SPLIT_SEED = 101, 102, 103


@dataclass(frozen=True)
class Windows:
    """Texts of one length as token ids, with the tokenizer that made them."""

    name: str
    train: Array  # (texts, length)
    held_out: Array  # (texts, length)
    tokenizer: "Tokenizer"
    masked: bool = False  # whether masked tokens are predicted, or next ones
    seed: int = 0
    language: Language | None = None
    held_out_texts: Sequence[str] = field(default=(), repr=False)  # one document each

    @property
    def lengths(self) -> Array:
        """The tokens of each training text."""
        return np.full(len(self.train), self.train.shape[1])

    @property
    def held_out_places(self) -> range:
        """The held-out texts that a loss is computed on."""
        return range(min(len(self.held_out), max(1, HELD_OUT // self.held_out.shape[1])))

    @cached_property
    def held_out_mask(self) -> Array:
        """Which held-out tokens are masked, the same for every model."""
        return self.draw_mask(self.held_out, (_HELD_OUT_SEED,))

    def draw_mask(self, texts: Array, seed: tuple[int, ...]) -> Array:
        """Return which tokens are masked; at least one of each text."""
        rng = np.random.default_rng([*seed, _MASK_SEED])
        chosen = rng.random(texts.shape) < MASKED
        chosen[np.arange(len(texts)), rng.integers(texts.shape[1], size=len(texts))] = True
        return chosen

    @cached_property
    def unigram_entropy(self) -> float:
        """The entropy of a token by itself, in nats.

        Of a synthetic language it is known. Of held-out text it is that of the counts of the
        very tokens that are predicted: no constant guess has a smaller loss there.
        """
        if self.language is not None:
            return self.language.unigram_entropy
        held = self.held_out[: len(self.held_out_places)]
        chosen = held[self.held_out_mask[: len(held)]] if self.masked else held[:, 1:].ravel()
        counts = np.bincount(chosen)
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    @cached_property
    def floor(self) -> float | None:
        """The least loss that a model can have, where that is known."""
        if self.language is None:
            return None
        if not self.masked:
            return self.language.floor(self.train.shape[1])
        held = self.held_out[: len(self.held_out_places)]
        return self.language.masked_loss(held - len(SPECIAL), self.held_out_mask[: len(held)])

    def digest(self) -> str:
        """Return a fingerprint of texts and tokenizer."""
        parts = (
            np.ascontiguousarray(self.train).tobytes(),
            np.ascontiguousarray(self.held_out).tobytes(),
            self.tokenizer.to_str().encode(),
        )
        return blake2b(b"\0".join(parts), digest_size=16).hexdigest()

    @property
    def vocabulary(self) -> int:
        """The number of tokens."""
        return int(self.tokenizer.get_vocab_size())


def open_windows(spec: TrainSpec, live: object = None) -> Windows:
    """Return the texts that a spec names, cut into windows."""
    masked = spec.switches.objective == "masked" or spec.arch == "bert"
    if spec.language is not None:
        return _of_language(spec, masked)
    corpus = open_documents(spec.read, live, length=spec.train.length)
    if corpus.kind != "text":
        raise SourceError(
            f"expected texts to train on, got {corpus.kind} in {corpus.name!r}",
            hint="name a text, a folder of texts, or a table with a column of texts",
            slug="nursery-data",
        )
    train, held_out = _split(corpus, spec.hold_out)
    length, needed = spec.train.length, spec.train.batch
    # No token is shorter than a byte: what is too short for that needs no other vocabulary.
    bound = [sum(len(text.encode()) + 1 for text in part) for part in (train, held_out)]
    if bound[0] < needed * length or bound[1] < length:
        raise _too_short(corpus.name, needed, length, bound)
    cutter = train_tokenizer(train, spec)
    windows = Windows(
        name=corpus.name,
        train=_cut(cutter, train, length),
        held_out=_cut(cutter, held_out, length),
        tokenizer=cutter,
        masked=masked,
        seed=spec.train.seed,
        held_out_texts=held_out,
    )
    if len(windows.train) < needed or not len(windows.held_out):
        raise _too_short(
            corpus.name, needed, length, [windows.train.size, windows.held_out.size]
        )
    return windows


def _too_short(name: str, batch: int, length: int, got: Sequence[int]) -> ConfigError:
    return ConfigError(
        f"expected at least {batch * length:,} tokens for one batch and {length} held out, got "
        f"{got[0]:,} and {got[1]:,} in {name!r}",
        hint="take a longer text, or a smaller --batch or --length",
        slug="nursery-text",
    )


def _of_language(spec: TrainSpec, masked: bool) -> Windows:
    """Return texts of a synthetic language; none is read twice in training."""
    assert spec.language is not None
    language = Language(spec.shape.vocabulary, spec.language)
    train, first = spec.train, len(SPECIAL)
    texts = train.steps * train.batch
    held_out = max(1, HELD_OUT // train.length)
    words = [f"w{number}" for number in range(language.words)]
    cutter = word_tokenizer(words)
    kept = language.sample(held_out, train.length, (_HELD_OUT_SEED,))
    return Windows(
        name=f"{spec.language} language",
        train=language.sample(texts, train.length, (train.seed, 0)) + first,
        held_out=kept + first,
        tokenizer=cutter,
        masked=masked,
        seed=train.seed,
        language=language,
        held_out_texts=[" ".join(words[word] for word in text) for text in kept],
    )


def _split(corpus: Corpus, share: float) -> tuple[list[str], list[str]]:
    """Return training and held-out documents, dealt by chance that no seed changes."""
    texts = [str(each.content) for each in corpus]
    if len(texts) == 1:  # one document: its end is held out
        cut = len(texts[0]) - ceil(share * len(texts[0]))
        return [texts[0][:cut]], [texts[0][cut:]]
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(texts))
    count = max(1, round(share * len(texts)))
    kept = set(order[:count].tolist())
    train = [text for number, text in enumerate(texts) if number not in kept]
    return train, [text for number, text in enumerate(texts) if number in kept]


def _cut(cutter: "Tokenizer", texts: Sequence[str], length: int) -> Array:
    """Return the tokens of all documents, an end after each, in windows of one length."""
    parts: list[int] = []
    for each in cutter.encode_batch(list(texts)):
        parts += [*each.ids, 0]
    whole = len(parts) // length * length
    return np.array(parts[:whole], dtype=np.int64).reshape(-1, length)


def train_tokenizer(texts: Sequence[str], spec: TrainSpec) -> "Tokenizer":
    """Return a tokenizer of bytes, or of merged bytes learnt from the texts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    cutter = Tokenizer(models.BPE(unk_token=UNKNOWN))
    cutter.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cutter.decoder = decoders.ByteLevel()
    least = len(SPECIAL) + BYTES
    size = least if spec.tokenizer == "bytes" else spec.shape.vocabulary
    if size < least:
        raise ConfigError(
            f"expected a vocabulary of at least {least} for text, got {size}",
            hint="there are 256 bytes and 3 special tokens: raise --vocabulary, or take "
            "--tokenizer=bytes",
            slug="nursery-vocabulary",
        )
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(SPECIAL),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    cutter.train_from_iterator(texts, trainer)
    found = cutter.get_vocab_size()
    if found < size:
        raise ConfigError(
            f"expected a text that supports a vocabulary of {size}, got one of {found} tokens",
            hint=f"lower --vocabulary to {found} or less, or take a longer text",
            slug="nursery-vocabulary",
        )
    return cutter


def word_tokenizer(words: Sequence[str]) -> "Tokenizer":
    """Return a tokenizer that knows these words, with spaces between them."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    ids = {word: number for number, word in enumerate((*SPECIAL, *words))}
    cutter = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    cutter.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return cutter


def as_pretrained(cutter: "Tokenizer", length: int) -> Any:
    """Return a tokenizer as transformers saves it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=cutter,
        bos_token=END,
        eos_token=END,
        pad_token=END,
        mask_token=MASK,
        unk_token=UNKNOWN,
        model_max_length=length,
    )
