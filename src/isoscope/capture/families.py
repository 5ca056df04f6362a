"""Where the attention and the feed-forward part of a block are: a short table, then a rule.

`attn.L` and `mlp.L` are what a part gives to the residual stream, before the residual is
added. That is the output of the module named here, so in the families of the table:

- gemma 2 and 3, olmo 2: after the norm that stands between the part and the stream;
- dinov2: after its layer scale (beit scales by a bare parameter, which no tap can hear);
- bert, roberta, electra, deberta, canine, mpnet, albert: the dense layer before residual
  and norm;
- bloom, falcon, mpt: the dense layer, because bloom and mpt add the residual around it;
- bart, whisper, opt, and nn.TransformerEncoderLayer: the second layer of the feed-forward;
- rwkv: time mixing is no attention, so there is no `attn.L`.

Elsewhere it is the child that is called attention, or MLP, feed-forward and the like, itself
or its class. Where a block has several, the first is meant.
Cross-attention is never meant.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

CROSS = re.compile(r"cross|enc_?dec|encoder_attn|encoderdecoder", re.IGNORECASE)
_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
_FORWARD = re.compile(r"mlp|ffn|feed_?forward|sparsemoe|dense(relu|gated|act)", re.IGNORECASE)

_NORM = re.compile(r"norm|dropout", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Parts:
    """Dotted names within a block; None where it has no such part."""

    attn: str | None
    mlp: str | None


# The first row whose modules a block has is taken.
TABLE = (
    Parts("post_attention_layernorm", "post_feedforward_layernorm"),
    Parts("layer_scale1", "layer_scale2"),
    Parts("attention.output.dense", "output.dense"),
    Parts("attention.attn.o", "output.dense"),
    Parts("attention.dense", "ffn_output"),
    Parts("self_attention.dense", "mlp.dense_4h_to_h"),
    Parts("attn", "ffn.down_proj"),
    Parts("self_attn", "fc2"),
    Parts("self_attn", "linear2"),
)


def parts(block: nn.Module) -> Parts:
    """Return where the parts of a block are."""
    names = {name for name, _ in block.named_modules()}
    for row in TABLE:
        if row.attn in names and row.mlp in names:
            return row
    attn = next((n for n in _called(block, _ATTENTION) if not CROSS.search(n)), None)
    if attn is not None and hasattr(block.get_submodule(attn), "receptance"):
        attn = None  # rwkv
    return Parts(attn, next(iter(_called(block, _FORWARD)), None))


def _called(block: nn.Module, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the children called so, and those of the entries of a list (T5)."""
    for dots in (0, 2):
        for name, module in block.named_modules():
            words = f"{name.split('.')[-1]} {type(module).__name__}"
            fits = pattern.search(words) and not _NORM.search(words)
            if name and name.count(".") == dots and fits:
                yield name
