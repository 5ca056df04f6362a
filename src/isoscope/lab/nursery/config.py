"""The configuration of a nursery model: every ingredient under dispute is a switch.

Importing this module needs transformers, but neither torch nor a model class.
"""

from typing import Literal

from transformers.configuration_utils import PretrainedConfig

MODEL_TYPE = "isoscope_nursery"


class NurseryConfig(PretrainedConfig):
    """A Transformer whose ingredients can be exchanged one by one.

    With the default switches it computes what gpt_neox computes from the same weights.
    """

    model_type = MODEL_TYPE

    vocab_size: int = 2048
    hidden_size: int = 128
    num_hidden_layers: int = 4
    num_attention_heads: int = 4
    intermediate_size: int | None = None  # four times the width
    max_position_embeddings: int = 2048
    norm_place: Literal["pre", "post"] = "pre"
    norm_kind: Literal["layer", "rms"] = "layer"
    final_norm_bias: bool = True
    mixer: Literal["attention", "convolution"] = "attention"
    objective: Literal["causal", "masked"] = "causal"
    parallel_residual: bool = True  # attention and feed-forward read the same stream
    rotary_share: float = 0.25  # of the width of a head that rotary positions turn
    rotary_base: float = 10_000.0
    layer_norm_eps: float = 1e-5
    hidden_dropout: float = 0.0
    initializer_range: float = 0.02
    tie_word_embeddings: bool = False
    use_cache: bool = False  # a convolution has no keys and values to keep
    is_decoder: bool = True
    bos_token_id: int | None = 0
    eos_token_id: int | list[int] | None = 0
    pad_token_id: int | None = 0

    def __post_init__(self, **rest: object) -> None:
        if self.intermediate_size is None:
            self.intermediate_size = 4 * self.hidden_size
        self.is_decoder = self.objective == "causal"
        super().__post_init__(**rest)
        self.validate_architecture()  # which only strict configurations do by themselves

    def validate_architecture(self) -> None:
        """Refuse switches that do not go together."""
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"expected a width that {self.num_attention_heads} heads divide, got "
                f"{self.hidden_size}"
            )
        if self.norm_place == "post" and self.parallel_residual:
            raise ValueError(
                "cannot put norms after a parallel residual: set parallel_residual=False"
            )
