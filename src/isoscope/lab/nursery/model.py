"""The nursery model: one class that holds every ingredient under dispute.

Names of weights are those of gpt_neox, and with the default switches the logits are too.
What the switches change:

- `norm_place`: norms before attention and feed-forward with one at the end, or after them
  with one at the beginning; their number is the same;
- `norm_kind`: LayerNorm, or RMSNorm, which has a gain and nothing else;
- `final_norm_bias`: a bias in the last norm or none, whatever its kind;
- `mixer`: attention, or a convolution with weights of the very same shapes: what would become
  queries, keys and values becomes what a position takes from itself and two others;
- `objective`: a position sees what is before it, or what is on both sides.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, layer_norm, rms_norm
from transformers.generation.utils import GenerationMixin
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, PreTrainedModel

from isoscope.lab.nursery.config import NurseryConfig

TAPS = 3  # positions that a convolution looks at, itself among them
Turn = tuple[Tensor, Tensor]  # cosines and sines of positions, (batch, positions, width)


class NurseryLayerNorm(nn.Module):
    """A norm with a gain: centred or not, with a bias or without."""

    def __init__(self, width: int, eps: float, *, centred: bool, bias: bool) -> None:
        super().__init__()
        self.eps, self.centred = eps, centred
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, rows: Tensor) -> Tensor:
        """Return normalised rows."""
        if self.centred:
            return layer_norm(rows, self.weight.shape, self.weight, self.bias, self.eps)
        normed = rms_norm(rows, self.weight.shape, self.weight, self.eps)
        return normed if self.bias is None else normed + self.bias


class NurseryAttention(nn.Module):
    """Self-attention with rotary positions, as in gpt_neox."""

    def __init__(self, config: NurseryConfig, layer: int) -> None:
        super().__init__()
        self.config, self.layer_idx = config, layer
        self.head_size = config.hidden_size // config.num_attention_heads
        self.scaling = self.head_size**-0.5
        self.is_causal = config.objective == "causal"
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states: Tensor, mask: Tensor | None, turn: Turn, **rest: Any) -> Tensor:
        """Return what positions take from each other."""
        shape = states.shape[:-1]
        split = self.query_key_value(states).view(*shape, -1, 3 * self.head_size)
        queries, keys, values = split.transpose(1, 2).chunk(3, dim=-1)  # (b, heads, n, width)
        attend: Callable[..., tuple[Tensor, Tensor | None]]
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation or "eager",  # pyright: ignore[reportPrivateUsage]
            eager_attention,
        )
        mixed, _ = attend(
            self,
            rotate(queries, turn),
            rotate(keys, turn),
            values,
            mask,
            scaling=self.scaling,
            dropout=0.0,
            **rest,
        )
        return self.dense(mixed.reshape(*shape, -1))


class NurseryConvolution(nn.Module):
    """A convolution over positions, with as many weights as attention has.

    The distance between its taps grows threefold from block to block, so that four blocks
    see 81 positions.
    """

    def __init__(self, config: NurseryConfig, layer: int) -> None:
        super().__init__()
        self.reach = TAPS**layer
        self.first = 0 if config.objective == "causal" else -1  # the tap that is farthest ahead
        self.query_key_value = nn.Linear(config.hidden_size, TAPS * config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, states: Tensor, real: Tensor | None) -> Tensor:
        """Return what positions take from their neighbours; padding has nothing to give."""
        parts = self.query_key_value(states)  # (batch, positions, taps x d)
        if real is not None:
            parts = parts * real[..., None].to(parts.dtype)
        taps = parts.chunk(TAPS, dim=-1)
        moved = [shift(tap, (self.first + k) * self.reach) for k, tap in enumerate(taps)]
        return self.dense(gelu(torch.stack(moved).sum(dim=0)))


class NurseryFeedForward(nn.Module):
    """Two linear maps with GELU between them."""

    def __init__(self, config: NurseryConfig) -> None:
        super().__init__()
        inner = int(config.intermediate_size or 4 * config.hidden_size)
        self.dense_h_to_4h = nn.Linear(config.hidden_size, inner)
        self.dense_4h_to_h = nn.Linear(inner, config.hidden_size)

    def forward(self, states: Tensor) -> Tensor:
        """Return what a position makes of itself."""
        return self.dense_4h_to_h(gelu(self.dense_h_to_4h(states)))


class NurseryBlock(nn.Module):
    """A mixer of positions and a feed-forward part, each with its norm."""

    def __init__(self, config: NurseryConfig, layer: int) -> None:
        super().__init__()
        self.post = config.norm_place == "post"
        self.parallel = config.parallel_residual
        last = self.post and layer == config.num_hidden_layers - 1
        self.input_layernorm = make_norm(config)
        self.post_attention_layernorm = make_norm(config, final=last)
        self.dropout = nn.Dropout(config.hidden_dropout)
        if config.mixer == "attention":
            self.attention = NurseryAttention(config, layer)
        else:
            self.convolution = NurseryConvolution(config, layer)
        self.mlp = NurseryFeedForward(config)

    def forward(
        self,
        states: Tensor,
        mask: Tensor | None,
        real: Tensor | None,
        turn: Turn,
        **rest: Any,
    ) -> Tensor:
        """Return the stream after this block."""
        first, second = self.input_layernorm, self.post_attention_layernorm
        if self.post:
            states = first(states + self._mix(states, mask, real, turn, **rest))
            return second(states + self.dropout(self.mlp(states)))
        mixed = self._mix(first(states), mask, real, turn, **rest)
        if self.parallel:
            return self.dropout(self.mlp(second(states))) + mixed + states
        states = mixed + states
        return self.dropout(self.mlp(second(states))) + states

    def _mix(
        self, rows: Tensor, mask: Tensor | None, real: Tensor | None, turn: Turn, **rest: Any
    ) -> Tensor:
        if hasattr(self, "attention"):
            return self.dropout(self.attention(rows, mask, turn, **rest))
        return self.dropout(self.convolution(rows, real))


class NurseryPreTrainedModel(PreTrainedModel):
    """What transformers has to know of the nursery's classes."""

    config_class = NurseryConfig
    base_model_prefix = "nursery"
    config: NurseryConfig
    _no_split_modules = ["NurseryBlock"]  # noqa: RUF012
    _supports_sdpa = True
    _supports_attention_backend = True


class NurseryModel(NurseryPreTrainedModel):
    """The model without its head."""

    def __init__(self, config: NurseryConfig) -> None:
        super().__init__(config)
        self.embed_in = nn.Embedding(config.vocab_size, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout)
        post = config.norm_place == "post"
        self.embed_layernorm = make_norm(config) if post else None
        self.layers = nn.ModuleList(
            NurseryBlock(config, layer) for layer in range(config.num_hidden_layers)
        )
        self.final_layer_norm = None if post else make_norm(config, final=True)
        complete(self)

    def get_input_embeddings(self) -> nn.Module:
        """Return the embedding."""
        return self.embed_in

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the embedding."""
        self.embed_in = value

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool | None = None,
        **rest: Any,
    ) -> BaseModelOutput:
        """Return the states after the last norm."""
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("expected input_ids or inputs_embeds, got both or neither")
        if inputs_embeds is None:
            inputs_embeds = self.embed_in(input_ids)
        states = self.dropout(inputs_embeds)
        if self.embed_layernorm is not None:
            states = self.embed_layernorm(states)
        if position_ids is None:
            position_ids = torch.arange(states.shape[1], device=states.device)[None]
        mask = self._mask(states, attention_mask, position_ids)
        turn = turns(self.config, position_ids, states)
        seen = [states]
        for block in self.layers:
            states = block(states, mask, attention_mask, turn, position_ids=position_ids)
            seen.append(states)
        if self.final_layer_norm is not None:
            states = self.final_layer_norm(states)
        wanted = output_hidden_states or rest.get("output_hidden_states")
        hidden = (*seen[:-1], states) if wanted else None  # the last one after the norm
        return BaseModelOutput(last_hidden_state=states, hidden_states=hidden)

    def _mask(
        self, states: Tensor, attention_mask: Tensor | None, position_ids: Tensor
    ) -> Tensor | None:
        if self.config.mixer != "attention":
            return None
        if self.config.objective == "masked":
            return create_bidirectional_mask(self.config, states, attention_mask)
        return create_causal_mask(
            self.config, states, attention_mask, None, position_ids=position_ids
        )


class NurseryLM(NurseryPreTrainedModel, GenerationMixin):
    """The model with a head over the vocabulary: predicts the next token, or masked ones."""

    _tied_weights_keys = {"lm_head.weight": "nursery.embed_in.weight"}  # noqa: RUF012

    def __init__(self, config: NurseryConfig) -> None:
        super().__init__(config)
        self.nursery = NurseryModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        complete(self)

    def get_output_embeddings(self) -> nn.Module:
        """Return the head."""
        return self.lm_head

    def set_output_embeddings(self, new_embeddings: nn.Module) -> None:
        """Replace the head."""
        self.lm_head = new_embeddings

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        logits_to_keep: int = 0,
        **rest: Any,
    ) -> CausalLMOutput:
        """Return logits, and the loss where there are labels; -100 counts for nothing."""
        found = self.nursery(
            input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            inputs_embeds=inputs_embeds,
            output_hidden_states=rest.get("output_hidden_states"),
        )
        states = found.last_hidden_state
        logits = self.lm_head(states[:, -logits_to_keep:] if logits_to_keep else states)
        loss: Any = None
        if labels is not None:
            ahead = self.config.objective == "causal"
            said, wanted = (logits[:, :-1], labels[:, 1:]) if ahead else (logits, labels)
            loss = cross_entropy(said.flatten(0, 1).float(), wanted.flatten())
        return CausalLMOutput(loss=loss, logits=logits, hidden_states=found.hidden_states)


def complete(model: Any) -> None:
    """Let transformers initialise and tie weights, once all modules are there.

    `Any`, because the type checker would read thousands of files to know what this returns.
    """
    model.post_init()


def make_norm(config: NurseryConfig, *, final: bool = False) -> NurseryLayerNorm:
    """Return a norm as the switches say; the final one has a bias, or none, of its own."""
    centred = config.norm_kind == "layer"
    bias = config.final_norm_bias if final else centred
    return NurseryLayerNorm(
        config.hidden_size, config.layer_norm_eps, centred=centred, bias=bias
    )


def turns(config: NurseryConfig, positions: Tensor, like: Tensor) -> Turn:
    """Return cosines and sines of rotary positions; computed anew, which costs next to nothing.

    A buffer would have to be restored wherever weights are loaded.
    """
    head = config.hidden_size // config.num_attention_heads
    width = int(head * config.rotary_share)
    powers = torch.arange(0, width, 2, device=like.device, dtype=torch.float) / max(width, 1)
    angles = positions[..., None].float() / config.rotary_base**powers
    both = torch.cat((angles, angles), dim=-1)
    return both.cos().to(like.dtype), both.sin().to(like.dtype)


def rotate(rows: Tensor, turn: Turn) -> Tensor:
    """Return queries or keys, (batch, heads, positions, width), with the first part turned."""
    cosines, sines = (each[:, None] for each in turn)
    width = cosines.shape[-1]
    turned, rest = rows[..., :width], rows[..., width:]
    first, second = turned.chunk(2, dim=-1)
    swapped = torch.cat((-second, first), dim=-1)
    return torch.cat((turned * cosines + swapped * sines, rest), dim=-1)


def shift(rows: Tensor, places: int) -> Tensor:
    """Return rows moved to later positions, or to earlier ones; zeros come in.

    >>> shift(torch.tensor([[[1.0], [2.0], [3.0]]]), 1).flatten().tolist()
    [0.0, 1.0, 2.0]
    """
    if not places:
        return rows
    moved = torch.zeros_like(rows)
    if abs(places) < rows.shape[1]:
        if places > 0:
            moved[:, places:] = rows[:, :-places]
        else:
            moved[:, :places] = rows[:, -places:]
    return moved


def eager_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Return attention written out, for those who want to look at its weights."""
    scores = query @ key.transpose(2, 3) * scaling  # (batch, heads, positions, positions)
    if attention_mask is not None:
        scores = scores + attention_mask
    weights = scores.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    return (weights @ value).transpose(1, 2).contiguous(), weights
