"""The special tokens around a text: what the files of a model say, put into its tokenizer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from isoscope.capture.model.folder import read_object
from isoscope.capture.model.gguf_header import Scalar, read_scalars
from isoscope.capture.model.load import Tokenizer
from isoscope.dataclass import dataclass

CONFIG = "tokenizer_config.json"
GGML = "tokenizer.ggml."
TRIAL = "a"


@dataclass(frozen=True)
class SpecialTokens:
    """Whether texts begin with bos and end with eos; None where the files do not say."""

    bos: bool | None = None
    eos: bool | None = None
    bos_id: int | None = None  # where the file names tokens by their ids
    eos_id: int | None = None


def read_special_tokens(folder: Path, gguf: str | None) -> SpecialTokens:
    """Return what a GGUF file, or tokenizer_config.json of a folder, says of bos and eos."""
    if gguf is not None:
        return _of_gguf(read_scalars(folder / gguf))
    path = folder / CONFIG
    stored = read_object(path) if path.is_file() else {}
    return SpecialTokens(_flag(stored, "add_bos_token"), _flag(stored, "add_eos_token"))


def _of_gguf(found: dict[str, Scalar]) -> SpecialTokens:
    bos, eos = _flag(found, f"{GGML}add_bos_token"), _flag(found, f"{GGML}add_eos_token")
    # As llama.cpp reads files without these keys.
    is_llama = found.get(f"{GGML}model") == "llama" or found.get(f"{GGML}pre") == "llama-bpe"
    return SpecialTokens(
        True if bos is None and is_llama else bos,
        eos,
        _id(found, f"{GGML}bos_token_id"),
        _id(found, f"{GGML}eos_token_id"),
    )


def _flag(stored: "dict[str, object] | dict[str, Scalar]", key: str) -> bool | None:
    value = stored.get(key)
    return value if isinstance(value, bool) else None


def _id(stored: dict[str, Scalar], key: str) -> int | None:
    value = stored.get(key)
    return value if isinstance(value, int) else None


def apply_special_tokens(
    tokenizer: Tokenizer, wanted: SpecialTokens, say: Callable[[str], None]
) -> None:
    """Let a tokenizer put bos and eos around texts as the files say.

    transformers drops both settings of a GGUF file, and those of tokenizer_config.json
    where there is a tokenizer.json.
    """
    fast: Any = tokenizer
    backend = getattr(fast, "backend_tokenizer", None)
    if backend is None:  # written in Python: these read the settings themselves
        return
    for role, known in (("bos_token", wanted.bos_id), ("eos_token", wanted.eos_id)):
        if getattr(fast, f"{role}_id", None) is None and known is not None:
            setattr(fast, role, fast.convert_ids_to_tokens(known))
    bos, eos = fast.bos_token_id, fast.eos_token_id
    around = _around(tokenizer)
    if around is None:
        return
    before, after = (list(each) for each in around)
    if bos is not None and wanted.bos is not None and (bos in before) != wanted.bos:
        before = [bos, *before] if wanted.bos else [each for each in before if each != bos]
        say(_remark(wanted.bos, "begin", fast.bos_token))
    if eos is not None and wanted.eos is not None and (eos in after) != wanted.eos:
        after = [*after, eos] if wanted.eos else [each for each in after if each != eos]
        say(_remark(wanted.eos, "end", fast.eos_token))
    if (before, after) != around:
        backend.post_processor = _template(fast, before, after)


def _remark(added: bool, verb: str, token: str) -> str:
    how = verb if added else f"do not {verb}"
    return f"texts {how} with {token}, as the model's files say"


def _around(tokenizer: Tokenizer) -> tuple[list[int], list[int]] | None:
    """Return the ids that a tokenizer puts before and after a text; None if it is unclear."""
    inner = list(tokenizer(TRIAL, add_special_tokens=False)["input_ids"])
    outer = list(tokenizer(TRIAL)["input_ids"])
    for start in range(len(outer) - len(inner) + 1):
        if inner and outer[start : start + len(inner)] == inner:
            return outer[:start], outer[start + len(inner) :]
    return None


def _template(tokenizer: Any, before: list[int], after: list[int]) -> Any:
    from tokenizers import processors

    names = {token: f"special{token}" for token in (*before, *after)}
    around = [[names[token] for token in part] for part in (before, after)]
    single = [*around[0], "$A", *around[1]]
    second = [f"{name}:1" for name in (*around[0], "$B", *around[1])]
    return processors.TemplateProcessing(
        single=single,
        pair=[*single, *second],
        special_tokens=[
            {"id": name, "ids": [token], "tokens": [tokenizer.convert_ids_to_tokens(token)]}
            for token, name in names.items()
        ],
    )
