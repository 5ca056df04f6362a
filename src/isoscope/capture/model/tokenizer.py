"""The tokenizer of a model, or the processor of its audio or images."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isoscope.capture.model.folder import first_line, no_panic
from isoscope.capture.model.load import Processor, Takes, Tokenizer
from isoscope.capture.model.quiet import quiet
from isoscope.capture.model.special_tokens import apply_special_tokens, read_special_tokens

# What a tokenizer may be read from. Without any of them transformers makes one up, which
# knows its special tokens and no others.
VOCABULARIES = (
    "tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model",
    "sentencepiece.bpe.model", "tokenizer.tiktoken", "vocab.model", "tekken.json",
)  # fmt: skip
BESIDE = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt")
# Characters and bytes need no file.
WITHOUT_FILES = {"CanineTokenizer", "ByT5Tokenizer", "PerceiverTokenizer"}
LONGEST_VOCABULARY = 64 * 2**20


def tokenizer_files(folder: Path) -> list[Path]:
    """Return the files a tokenizer of this folder is made of."""
    return [path for name in (*VOCABULARIES, *BESIDE) if (path := folder / name).is_file()]


def read_tokenizer(
    folder: Path, gguf: str | None, *, trust: bool, say: Callable[[str], None]
) -> Tokenizer | None:
    """Return the tokenizer of a folder or GGUF file; None if it cannot be read."""
    try:
        with no_panic():
            return _read(folder, gguf, trust, say)
    except Exception as error:  # each tokenizer class fails in its own way
        if gguf or any((folder / name).is_file() for name in VOCABULARIES):
            say(f"warning: no tokenizer can be made of {folder}: {first_line(error)}")
        return None


def _read(
    folder: Path, gguf: str | None, trust: bool, say: Callable[[str], None]
) -> Tokenizer | None:
    from transformers import AutoTokenizer

    plain = folder / "vocab.txt"
    if gguf is None and plain.is_file() and not (folder / "tokenizer.json").is_file():
        return _from_list(plain, say)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust}
    if gguf:
        options["gguf_file"] = gguf
    with quiet():
        found = AutoTokenizer.from_pretrained(folder, **options)
    has_file = any((folder / name).is_file() for name in VOCABULARIES)
    if not (gguf or has_file or type(found).__name__ in WITHOUT_FILES):
        return None
    apply_special_tokens(found, read_special_tokens(folder, gguf), say)
    return found


def _from_list(path: Path, say: Callable[[str], None]) -> Tokenizer:
    from transformers import BertTokenizer

    words = _words(path)
    if any(word.startswith("##") for word in words):
        with quiet():
            return BertTokenizer.from_pretrained(path.parent, local_files_only=True)
    tokenizer = whole_tokens(words)
    say("vocab.txt has no word pieces (##): texts are cut into its longest entries")
    return tokenizer


def whole_tokens(words: list[str]) -> Tokenizer:
    """Return a tokenizer whose tokens are the entries of a vocabulary, longest first.

    For vocabularies of whole tokens, such as the atoms and bonds of reaction SMILES: with
    or without spaces between them the text is the same, and what is in no entry becomes
    one unknown token, not the whole text.
    """
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: i for i, word in enumerate(words)}
    special = {
        role: word
        for role in ("unk", "sep", "pad", "cls", "mask")
        if (word := f"[{role.upper()}]") in ids
    }
    unknown = special.get("unk", words[0])
    cutter = Tokenizer(models.WordLevel(ids, unk_token=unknown))
    cutter.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(Regex(_pattern(words, set(special.values()))), "isolated"),
        ]
    )
    if "cls" in special and "sep" in special:
        cls, sep = special["cls"], special["sep"]
        cutter.post_processor = processors.TemplateProcessing(
            single=f"{cls} $A {sep}",
            pair=f"{cls} $A {sep} $B:1 {sep}:1",
            special_tokens=[(cls, ids[cls]), (sep, ids[sep])],
        )
    roles = {f"{role}_token": word for role, word in special.items()}
    found: Any = PreTrainedTokenizerFast(tokenizer_object=cutter, **roles)
    return found


def _pattern(words: list[str], special: set[str]) -> str:
    longest_first = sorted((w for w in words if w and w not in special), key=len, reverse=True)
    choices = [re.escape(word) for word in longest_first]
    # Where a bracket only ever opens an entry, an unknown bracket is one unknown thing.
    if "[" not in words and any(w.startswith("[") and w.endswith("]") for w in longest_first):
        choices.append(r"\[[^\]\s]*\]")
    return "|".join(choices)


def _words(path: Path) -> list[str]:
    if path.stat().st_size > LONGEST_VOCABULARY:
        raise ValueError("a vocabulary of more than 64 MiB")
    words = path.read_text("utf-8").split("\n")
    return [word.removesuffix("\r") for word in (words[:-1] if not words[-1] else words)]


SETTINGS = ("preprocessor_config.json", "processor_config.json")


def read_processor(
    folder: Path, kind: Takes, *, trust: bool, say: Callable[[str], None]
) -> Processor | None:
    """Return what turns audio or images into inputs; None for text and where it is missing."""
    if kind == "text" or not any((folder / name).is_file() for name in SETTINGS):
        return None
    from transformers import AutoFeatureExtractor, AutoImageProcessor

    auto = AutoImageProcessor if kind == "image" else AutoFeatureExtractor
    try:
        with quiet():
            return auto.from_pretrained(folder, local_files_only=True, trust_remote_code=trust)
    except Exception as error:  # each processor class fails in its own way
        say(f"warning: no processor of {kind} can be made of {folder}: {first_line(error)}")
        return None
