"""Small models of many families with random weights, their inputs, and what they have."""

from dataclasses import dataclass, field

import torch
from transformers import AutoConfig, AutoModel

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
TEXT = {**SMALL, "vocab_size": 99, "pad_token_id": 0}
GPT = {
    "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 32, "vocab_size": 99,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
IMAGE = {**SMALL, "image_size": 32, "patch_size": 8}
SPEECH = {
    **TEXT, "conv_dim": (16, 16), "conv_kernel": (10, 3), "conv_stride": (5, 2),
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
}  # fmt: skip
T5 = {
    "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 3, "num_decoder_layers": 2,
    "num_heads": 4, "vocab_size": 99, "decoder_start_token_id": 0,
}  # fmt: skip
BART = {
    "d_model": 32, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    "vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 2,
}  # fmt: skip
WHISPER = {**BART, "num_mel_bins": 8, "max_source_positions": 12, "suppress_tokens": None}

TOKENS = torch.arange(1, 13).reshape(2, 6)
ENDINGS = torch.arange(20, 30).reshape(2, 5)


@dataclass(frozen=True)
class Family:
    """A family: how to build it small, and which sites it should have."""

    kind: str  # as transformers calls it
    settings: dict
    takes: str = "text"
    layers: tuple[int, ...] = (3,)  # of each stack
    heads: int = 4
    key_heads: int = 4
    head_width: int = 8
    blocks: tuple[str, ...] = ("encoder.layer",)  # the list of blocks of each stack
    norm: str | None = "after"  # "inside" in post-norm models
    # How parts and stream are joined: "sum", or the norms after each sum, or not told here.
    joins: str | tuple[str, str] | None = "sum"
    out: str | None = None  # the projection after attention, within a block
    scale: float = 8**-0.5  # of the product of queries and keys
    parts: tuple[str, ...] = ("attn", "mlp")
    matrices: tuple[str, ...] = ("embed.weight",)
    widths: dict = field(default_factory=dict)  # of stages

    @property
    def prefixes(self):
        """Return what stands before the sites of each stack."""
        return ("enc.", "dec.") if len(self.layers) == 2 else ("",)

    def config(self):
        """Return the small config."""
        return AutoConfig.for_model(self.kind, **self.settings)

    def built(self, seed=0, auto=AutoModel, **loading):
        """Return the model, its norms given gains and biases that are not one and zero."""
        torch.manual_seed(seed)
        model = auto.from_config(self.config(), **loading).eval()
        for name, parameter in model.named_parameters():
            if "norm" in name.lower() or "ln_" in name:
                parameter.data += 0.2 * torch.randn_like(parameter)
        return model

    def inputs(self):
        """Return two small examples, the same every time."""
        noise = torch.Generator().manual_seed(5)
        if self.takes == "image":
            return {"pixel_values": torch.randn(2, 3, 32, 32, generator=noise)}
        if self.takes == "sound":
            return {"input_values": torch.randn(2, 200, generator=noise)}
        if self.takes == "mel":
            mel = torch.randn(2, 8, 24, generator=noise)
            return {"input_features": mel, "decoder_input_ids": ENDINGS}
        if self.takes == "characters":
            return {"input_ids": torch.randint(32, 900, (2, 32), generator=noise)}
        if len(self.layers) == 2:
            return {"input_ids": TOKENS, "decoder_input_ids": ENDINGS}
        return {"input_ids": TOKENS}


# fmt: off
_POST = {"norm": "inside"}
_BERT = {
    **_POST, "joins": ("attention.output.LayerNorm", "output.LayerNorm"),
    "out": "attention.output.dense",
}
_BART = {"joins": ("self_attn_layer_norm", "final_layer_norm"), "out": "self_attn.out_proj"}
_LLAMA = {"blocks": ("layers",), "out": "self_attn.o_proj"}
_FEW_KEYS = {"num_key_value_heads": 2}
_GPT = {"blocks": ("h",)}
_FALCON = {"blocks": ("h",), "out": "self_attention.dense"}
_T5 = {
    "layers": (3, 2), "blocks": ("encoder.block", "decoder.block"), "scale": 1.0,
    "out": "layer.0.SelfAttention.o",
}
_IMAGE = {"takes": "image", "matrices": ()}
_VIT = {**_IMAGE, "blocks": ("layers",), "out": "attention.o_proj"}
_SOUND = {
    "takes": "sound", "matrices": (), "blocks": ("encoder.layers",),
    "out": "attention.out_proj",
}
_SOUND_POST = {**_SOUND, **_POST, "joins": ("layer_norm", "final_layer_norm")}
_SIDES = {"layers": (3, 2), "blocks": ("encoder.layers", "decoder.layers")}
_NO_HEADS = {"heads": 0, "key_heads": 0}
_STAGES = {
    **_IMAGE, **_NO_HEADS, "blocks": ("encoder.stages",), "norm": None, "parts": (),
    "widths": {0: 8, 1: 16, 2: 24}, "joins": None,
}

FAMILIES = {
    "bert": Family("bert", TEXT, **_BERT),
    "roberta": Family("roberta", TEXT, **_BERT),
    "distilbert": Family(
        "distilbert",
        {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 64, "vocab_size": 99},
        **_POST, blocks=("transformer.layer",), joins=("sa_layer_norm", "output_layer_norm"),
        out="attention.out_lin",
    ),
    "albert": Family(
        "albert", {**TEXT, "embedding_size": 16}, **_POST, out="attention.dense",
        blocks=("encoder.albert_layer_groups.0.albert_layers",),
        joins=("attention.LayerNorm", "full_layer_layer_norm"),
    ),
    "deberta-v2": Family(
        "deberta-v2", {**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
        **_BERT,
    ),
    "electra": Family("electra", {**TEXT, "embedding_size": 16}, **_BERT),
    "mpnet": Family(
        "mpnet", TEXT, **_POST, joins=("attention.LayerNorm", "output.LayerNorm"),
        out="attention.attn.o",
    ),
    "modernbert": Family(
        "modernbert",
        {**TEXT, "bos_token_id": 1, "cls_token_id": 1, "eos_token_id": 2, "sep_token_id": 2},
        blocks=("layers",), out="attn.Wo",
    ),
    "gpt2": Family("gpt2", GPT, **_GPT, out="attn.c_proj"),
    "gpt_neo": Family(
        "gpt_neo",
        {
            "hidden_size": 32, "num_layers": 2, "num_heads": 4, "vocab_size": 99,
            "attention_types": [[["global", "local"], 1]], "bos_token_id": 1, "eos_token_id": 2,
        },
        **_GPT, layers=(2,), out="attn.attention.out_proj", scale=1.0,
    ),
    "gpt_neox": Family("gpt_neox", TEXT, blocks=("layers",), out="attention.dense"),
    "gptj": Family("gptj", {**GPT, "rotary_dim": 4}, **_GPT, out="attn.out_proj"),
    "codegen": Family("codegen", {**GPT, "rotary_dim": 4}, **_GPT, out="attn.out_proj"),
    "llama": Family("llama", {**TEXT, **_FEW_KEYS}, **_LLAMA, key_heads=2),
    "mistral": Family("mistral", {**TEXT, **_FEW_KEYS}, **_LLAMA, key_heads=2),
    "mixtral": Family(
        "mixtral", {**TEXT, **_FEW_KEYS, "num_local_experts": 2, "head_dim": 8}, **_LLAMA,
        key_heads=2,
    ),
    "qwen3": Family(
        "qwen3", {**TEXT, **_FEW_KEYS, "head_dim": 16}, **_LLAMA, key_heads=2, head_width=16,
        scale=0.25,
    ),
    "gemma3": Family(
        "gemma3_text",
        {**TEXT, "num_key_value_heads": 1, "head_dim": 8, "query_pre_attn_scalar": 16},
        **_LLAMA, key_heads=1, scale=0.25,
    ),
    "opt": Family(
        "opt", {**TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32},
        blocks=("decoder.layers",), out="self_attn.out_proj", scale=1.0,
    ),
    "opt-350m": Family(
        "opt",
        {**TEXT, "ffn_dim": 64, "word_embed_proj_dim": 16, "do_layer_norm_before": False},
        **_POST, **_BART, blocks=("decoder.layers",), scale=1.0,
    ),
    "falcon": Family("falcon", TEXT, **_FALCON, key_heads=1),
    "falcon-40b": Family(
        "falcon", {**TEXT, "new_decoder_architecture": True, "num_kv_heads": 2}, **_FALCON,
        key_heads=2,
    ),
    "falcon-rw": Family("falcon", {**TEXT, "multi_query": False, "alibi": True}, **_FALCON),
    "bloom": Family(
        "bloom", {"hidden_size": 32, "n_layer": 3, "n_head": 4, "vocab_size": 99}, **_FALCON
    ),
    "t5": Family("t5", T5, **_T5),
    "byt5": Family(
        "t5", {**T5, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}, **_T5
    ),
    "bart": Family("bart", BART, **_SIDES, **_POST, **_BART),
    "canine": Family("canine", SMALL, takes="characters", matrices=(), **_BERT),
    "vit": Family("vit", IMAGE, **_VIT),
    "beit": Family(
        "beit", {**IMAGE, "use_relative_position_bias": True}, **_VIT, norm=None, joins=None
    ),
    "dinov2": Family("dinov2", IMAGE, **_IMAGE, out="attention.o_proj"),
    "deit": Family("deit", IMAGE, **_VIT),
    "wav2vec2": Family("wav2vec2", SPEECH, **_SOUND_POST),
    "wav2vec2-large": Family(
        "wav2vec2", {**SPEECH, "do_stable_layer_norm": True, "feat_extract_norm": "layer"},
        **_SOUND,
    ),
    "hubert": Family("hubert", SPEECH, **_SOUND_POST),
    "whisper": Family(
        "whisper", WHISPER, takes="mel", **_SIDES, matrices=("dec.embed.weight",), scale=1.0,
        out="self_attn.out_proj",
    ),
    "mamba": Family(
        "mamba", {"hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 99, "state_size": 4},
        **_NO_HEADS, blocks=("layers",), parts=(), joins=None,
    ),
    "rwkv": Family(
        "rwkv",
        {"hidden_size": 32, "num_hidden_layers": 3, "vocab_size": 99, "context_length": 32},
        **_NO_HEADS, blocks=("blocks",), parts=("mlp",), joins=None,
    ),
    "convnext": Family(
        "convnext",
        {"hidden_sizes": [8, 16, 24], "depths": [1, 2, 1], "num_stages": 3, "patch_size": 2},
        **_STAGES,
    ),
    "resnet": Family(
        "resnet",
        {
            "embedding_size": 8, "hidden_sizes": [8, 16, 24], "depths": [1, 2, 1],
            "layer_type": "basic",
        },
        **_STAGES,
    ),
}
