"""The models a nursery trains: its own class with switches, and families from their configs."""

from math import sqrt
from typing import Any

import torch
from torch import nn

from isoscope.capture.model.quiet import quiet
from isoscope.capture.sites import token_matrices
from isoscope.lab.nursery.config import NurseryConfig
from isoscope.lab.nursery.figures import KINDS, PATCH, SIDE
from isoscope.lab.nursery.spec import TrainSpec

ROUND = 8  # llama's feed-forward is 8/3 of the width, rounded up to a multiple of this


def nursery_config(spec: TrainSpec, vocabulary: int) -> NurseryConfig:
    """Return the configuration that the switches of a spec say."""
    switches, shape = spec.switches, spec.shape
    in_turn = switches.residual == "sequential" or switches.norm_place == "post"
    return NurseryConfig(
        vocab_size=vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.head_count,
        max_position_embeddings=spec.train.length,
        norm_place=switches.norm_place,
        norm_kind=switches.norm_kind,
        final_norm_bias=not switches.no_final_bias,
        mixer=switches.mixer,
        objective=switches.objective or "causal",
        parallel_residual=not in_turn,
        tie_word_embeddings=switches.tied,
        # As GPT-2 of width 768 begins: with 0.02 a narrow model learns nothing for long.
        initializer_range=0.02 * sqrt(768 / shape.width),
    )


def family_config(spec: TrainSpec, vocabulary: int) -> Any:
    """Return the configuration of a family of transformers, small, and otherwise its own."""
    from transformers import AutoConfig

    shape, length = spec.shape, spec.train.length
    if spec.arch == "vit":
        return AutoConfig.for_model(
            "vit",
            hidden_size=shape.width,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.head_count,
            intermediate_size=4 * shape.width,
            image_size=SIDE,
            patch_size=PATCH,
            num_labels=len(KINDS),
            id2label=dict(enumerate(KINDS)),
            label2id={name: number for number, name in enumerate(KINDS)},
        )
    ends = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    if spec.arch == "gpt2":
        return AutoConfig.for_model(
            "gpt2",
            vocab_size=vocabulary,
            n_embd=shape.width,
            n_layer=shape.layers,
            n_head=shape.head_count,
            n_positions=length,
            **ends,
        )
    inner = 4 * shape.width
    if spec.arch == "llama":
        inner = -(-8 * shape.width // 3 // ROUND) * ROUND
    return AutoConfig.for_model(
        spec.arch,
        vocab_size=vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.head_count,
        intermediate_size=inner,
        max_position_embeddings=length,
        **ends,
    )


def build_model(spec: TrainSpec, vocabulary: int) -> Any:
    """Return the model of a spec with its first weights, which follow from the seed alone."""
    import transformers

    from isoscope.lab.nursery.model import NurseryLM

    torch.manual_seed(spec.train.seed)
    with quiet():
        if spec.arch == "nursery":
            return NurseryLM(nursery_config(spec, vocabulary))
        kinds = {"bert": "AutoModelForMaskedLM", "vit": "AutoModelForImageClassification"}
        auto = getattr(transformers, kinds.get(spec.arch, "AutoModelForCausalLM"))
        return auto.from_config(family_config(spec, vocabulary))


def count_parameters(model: nn.Module) -> tuple[int, int]:
    """Return the number of parameters, and of those outside of the token matrices."""
    whole = sum(each.numel() for each in model.parameters())
    matrices = {each.data_ptr(): each.numel() for each in token_matrices(model).values()}
    return whole, whole - sum(matrices.values())
