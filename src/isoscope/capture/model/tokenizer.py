"""The tokenizer of a model, or None: never one that turns every text into the same tokens."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isoscope.capture.model.quiet import quiet

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


def tokenizer_of(
    folder: Path, gguf: str | None, *, trust: bool, say: Callable[[str], None]
) -> Any | None:
    """Return the tokenizer of a folder or GGUF file; None, said why, if it cannot be read."""
    try:
        found, note = _read(folder, gguf, trust)
    except Exception as error:  # each tokenizer class fails in its own way
        if gguf or any((folder / name).is_file() for name in VOCABULARIES):
            reason = str(error).strip().split("\n")[0]
            say(f"warning: no tokenizer can be made of {folder}: {reason}")
        return None
    if note:
        say(note)
    return found


def _read(folder: Path, gguf: str | None, trust: bool) -> tuple[Any | None, str]:
    from transformers import AutoTokenizer

    plain = folder / "vocab.txt"
    if gguf is None and plain.is_file() and not (folder / "tokenizer.json").is_file():
        return _from_list(plain)
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust}
    if gguf:
        options["gguf_file"] = gguf
    with quiet():
        found: Any = AutoTokenizer.from_pretrained(folder, **options)
    has_file = any((folder / name).is_file() for name in VOCABULARIES)
    if not (gguf or has_file or type(found).__name__ in WITHOUT_FILES):
        return None, ""
    return found, ""


def _from_list(path: Path) -> tuple[Any, str]:
    from transformers import BertTokenizer

    words = _words(path)
    if any(word.startswith("##") for word in words):
        with quiet():
            return BertTokenizer.from_pretrained(path.parent, local_files_only=True), ""
    note = "vocab.txt has no word pieces (##): texts are cut into its longest entries"
    return whole_tokens(words), note


def whole_tokens(words: list[str]) -> Any:
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
    return PreTrainedTokenizerFast(tokenizer_object=cutter, **roles)


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
