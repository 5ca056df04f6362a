"""Token ids of a document, from its text or as they are in a file, with the special ones."""

from collections.abc import Mapping
from math import inf
from typing import Self

import numpy as np
from torch import nn

from isoscope.capture.feed.base import config_of, parameters, wrong_kind
from isoscope.capture.model.folder import first_line, no_panic, unreadable
from isoscope.capture.model.load import Loaded, Tokenizer
from isoscope.capture.model.pooling import Pooling
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError, SourceError
from isoscope.types import Array, Document

NAMES = ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id")
CHARACTERS = 16  # read at first for every token that may be kept


@dataclass(frozen=True)
class TokenSequence:
    """Ids with a mask of the special ones."""

    ids: Array  # (n,) int64
    special: Array  # (n,) bool
    types: Array | None  # (n,) int64, where the model takes segments
    truncated: bool

    @property
    def measurable(self) -> bool:
        """Whether there are two positions, one of them ordinary."""
        return len(self.ids) >= 2 and not bool(self.special.all())

    def ends(self) -> tuple[int, int]:
        """Return where the ordinary tokens begin and end."""
        ordinary = np.flatnonzero(~self.special)
        if not len(ordinary):
            return len(self.ids), len(self.ids)
        return int(ordinary[0]), int(ordinary[-1]) + 1

    def only(self, chosen: Array) -> Self:
        """Return the tokens at these places."""
        types = None if self.types is None else self.types[chosen]
        return type(self)(self.ids[chosen], self.special[chosen], types, self.truncated)

    def truncate(self, limit: int) -> Self:
        """Return the beginning, with the special tokens that stand at the end."""
        start, end = self.ends()
        room = max(0, limit - start - (len(self.ids) - end))
        return self.only(np.r_[0 : start + room, end : len(self.ids)])


class TokenReader:
    """Reads the tokens of documents, at most `limit` of each."""

    def __init__(
        self, loaded: Loaded, *, length: int, prompt: str | None = None, bos: bool = True
    ) -> None:
        self.tokenizer = loaded.tokenizer
        self.keeps_bos = bos
        self.config = config_of(loaded.body)
        self.limit = length_limit(loaded, length)
        self.vocabulary = vocabulary(loaded)
        self.has_prompt = bool(prompt)  # a model's own prompt does not make tokens invalid
        self.prompt = _prompt(loaded.pooling, prompt)
        self.lower = bool(getattr(loaded.pooling, "lower", False))
        self.special = np.array(sorted(self._special_ids()), dtype=np.int64)
        # gpt2 has no segments, but adds what it is given as if they were words
        segments = getattr(self.config, "type_vocab_size", 0) or 0
        self.takes_types = segments > 0 and "token_type_ids" in parameters(loaded.body)

    @property
    def pad(self) -> int:
        """The id to pad with; positions that have it are masked, so any will do."""
        for holder in (self.tokenizer, self.config):
            pad = getattr(holder, "pad_token_id", None)
            if isinstance(pad, int) and 0 <= pad < (self.vocabulary or pad + 1):
                return pad
        return 0

    @property
    def bos(self) -> int | None:
        """The token that the tokenizer has for the beginning of a text."""
        bos = getattr(self.tokenizer, "bos_token_id", None)
        return bos if isinstance(bos, int) else None

    def read(self, document: Document) -> TokenSequence:
        """Return the tokens of a document."""
        content = document.content
        if isinstance(content, str):
            return self.read_text(content, prompt=self.prompt)
        if not (
            isinstance(content, np.ndarray) and content.dtype.kind in "iu" and content.ndim == 1
        ):
            raise wrong_kind(document, "text or token ids")
        if self.has_prompt:
            raise ConfigError(
                "cannot put a prompt in front of token ids",
                hint="leave --prompt out, or give text",
                slug="prompt-text",
            )
        return self._read_ids(document.id, content)

    def read_text(self, text: str, *, prompt: str = "") -> TokenSequence:
        """Return the tokens of a text, special ones around them."""
        if self.tokenizer is None:
            raise ConfigError(
                "expected a tokenizer in the model's folder, got none",
                hint="tokenise the corpus yourself and give the ids as .npy files",
                slug="tokenizer-missing",
            )
        if not text.strip():
            nothing = np.zeros(0, dtype=np.int64)
            return TokenSequence(nothing, nothing.astype(bool), None, False)
        # half a surrogate pair, as JSON can hold, is nothing a tokenizer takes
        text = (prompt + text).encode("utf-8", "replace").decode("utf-8")
        encoded, added = self._encode(self.tokenizer, text.lower() if self.lower else text)
        ids = np.asarray(encoded["input_ids"], dtype=np.int64)
        if self.vocabulary is not None and (ids >= self.vocabulary).any():
            raise SourceError(
                f"expected token ids below {self.vocabulary}, as many as the model has "
                f"embeddings, got {ids.max()} from its tokenizer",
                hint="the tokenizer is of another model, or tokens were added to it alone",
                slug="token-range",
            )
        types = None
        if self.takes_types and "token_type_ids" in encoded:
            types = np.asarray(encoded["token_type_ids"], dtype=np.int64)
        if not self.keeps_bos and added[:1].any() and ids[0] == self.bos:
            ids, added, types = ids[1:], added[1:], None if types is None else types[1:]
        whole = TokenSequence(ids, added, types, len(ids) > self.limit)
        kept = whole.truncate(self.limit) if whole.truncated else whole
        special = kept.special | np.isin(kept.ids, self.special)
        return TokenSequence(kept.ids, special, kept.types, kept.truncated)

    def prompt_length(self) -> int:
        """Return the number of positions of the prompt, with the special tokens before it."""
        if not self.prompt.strip() or self.tokenizer is None:
            return 0
        return self.read_text(self.prompt).ends()[1]

    def _encode(self, tokenizer: Tokenizer, text: str) -> tuple[Mapping[str, list[int]], Array]:
        """Return the encoding of a text, or of as much of it as matters.

        A book need not be read to its end for its first 512 tokens; twice as many as are
        kept are encoded, so that a word cut in two is never among them.
        """
        size = CHARACTERS * self.limit
        while True:
            try:
                with no_panic():
                    encoded = tokenizer(
                        text[:size],
                        padding=False,
                        truncation=False,
                        return_attention_mask=False,
                        return_special_tokens_mask=True,
                        verbose=False,
                    )
            except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
                raise SourceError(
                    f"the tokenizer of the model cannot read a text: {first_line(error)}",
                    hint="its files are damaged or of another model; tokenise the corpus "
                    "yourself and give the ids as .npy files",
                    slug="tokenizer-broken",
                ) from error
            if size >= len(text) or len(encoded["input_ids"]) >= 2 * self.limit:
                return encoded, np.asarray(encoded["special_tokens_mask"], dtype=bool)
            size *= 4

    def _read_ids(self, name: str, content: Array) -> TokenSequence:
        ids = content[: self.limit].astype(np.int64)
        wrong = ids < 0
        if self.vocabulary is not None:
            wrong |= ids >= self.vocabulary
        if wrong.any():
            top = "" if self.vocabulary is None else f" below {self.vocabulary}"
            raise SourceError(
                f"expected token ids from 0{top}, got {ids[wrong][0]} in {name!r}",
                hint="tokenise the corpus with the tokenizer of this model",
                slug="token-range",
            )
        types = np.zeros_like(ids) if self.takes_types else None
        return TokenSequence(ids, np.isin(ids, self.special), types, len(content) > self.limit)

    def _special_ids(self) -> set[int]:
        # configs are full of defaults that are words in another vocabulary
        holder = self.config if self.tokenizer is None else self.tokenizer
        found = {each for name in NAMES for each in ids_of(getattr(holder, name, None))}
        # some models pad with the unknown token, which is of the document elsewhere
        padding = ids_of(getattr(holder, "pad_token_id", None))
        return found | (padding - ids_of(getattr(holder, "unk_token_id", None)))


def adds_bos(tokenizer: Tokenizer | None) -> bool:
    """Whether a tokenizer puts its bos token before texts."""
    bos = getattr(tokenizer, "bos_token_id", None)
    return tokenizer is not None and bos is not None and bos in tokenizer("a")["input_ids"][:1]


def vocabulary(loaded: Loaded) -> int | None:
    """Return the number of token ids the model has, or None if it takes any."""
    config = config_of(loaded.body)
    if getattr(config, "num_hash_functions", None):  # canine hashes code points
        return None
    size = getattr(config, "vocab_size", None)
    inner = getattr(config, "get_text_config", None)
    if size is None and inner is not None:
        size = getattr(inner(), "vocab_size", None)
    return None if size is None else int(size)


def ids_of(value: int | list[int] | None) -> set[int]:
    """Return token ids of a setting: one, several or none."""
    values = value if isinstance(value, list | tuple) else [value]
    return {int(each) for each in values if each is not None}


def _prompt(pooling: Pooling | None, prompt: str | None) -> str:
    """Return the text to put in front: the prompt of that name, or the words themselves.

    The default is the one that the model's folder puts in front of all texts.
    """
    named = getattr(pooling, "prompts", None) or {}
    if prompt is None:
        return str(named.get(getattr(pooling, "default_prompt", None), ""))
    return str(named.get(prompt, prompt))


SETTINGS = (
    "max_position_embeddings",
    "max_encoder_position_embeddings",
    "max_decoder_position_embeddings",
    "max_seq_len",
)


def length_limit(loaded: Loaded, length: int) -> int:
    """Return the least of `length` and what model, tokenizer and pooling allow."""
    if length < 2:
        raise ConfigError(
            f"expected a length of at least 2, got {length}",
            hint="leave --length out, or give the number of tokens to read of a document",
            slug="length-short",
        )
    config = config_of(loaded.body)
    # roberta and its kin count positions from behind the padding index: 514 are 512
    tables = [
        module.num_embeddings - module.padding_idx - 1
        for name, module in loaded.body.named_modules()
        if isinstance(module, nn.Embedding)
        and name.endswith("position_embeddings")
        and module.padding_idx is not None
    ]
    bounds = [
        length,
        *(getattr(config, name, None) for name in SETTINGS),
        *tables,
        getattr(loaded.tokenizer, "model_max_length", None),
        getattr(loaded.pooling, "max_seq_length", None),
    ]
    for bound in bounds:
        if isinstance(bound, bool) or not isinstance(bound, int | float | None):
            raise unreadable(loaded.name, f"{bound!r} as the longest sequence")
    known = [float(bound) for bound in bounds if isinstance(bound, int | float)]
    return int(min(bound for bound in known if 0 < bound < inf))
