"""Architectures: what an untrained block of each kind is made of, as closed forms see it."""

from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError

PLACES = ("input", "norm-bias", "query-bias", "key-bias", "query-key-bias")
QUANTITIES = (
    "cosine-in", "cosine-attention", "cosine-out", "mean-norm-in", "mean-norm-out",
    "score-spread", "attention-entropy", "largest-probability",
)  # fmt: skip


@dataclass(frozen=True)
class Architecture:
    """One kind of block: its norms, what its attention sees, how it is initialised."""

    name: str
    pre_norm: bool
    causal: bool = False
    norm_bias: bool = True  # whether its norms have a bias
    parallel: bool = False  # attention and MLP read the same input
    gated: bool = False  # the MLP is silu(gate) * up instead of gelu
    rotary: float = 0.0  # share of each head that rotary positions turn
    scaled: bool = False  # output projections shrink with the root of twice the blocks


ARCHITECTURES = {
    each.name: each
    for each in (
        Architecture("bert", pre_norm=False),
        Architecture("gpt2", pre_norm=True, causal=True, scaled=True),
        Architecture("gpt_neox", pre_norm=True, causal=True, parallel=True, rotary=0.25),
        Architecture(
            "llama", pre_norm=True, causal=True, norm_bias=False, gated=True, rotary=1.0
        ),
        Architecture("vit", pre_norm=True),
        Architecture("wav2vec2", pre_norm=False),
    )
}


@dataclass(frozen=True)
class Shape:
    """The sizes of a block and of its input, and the standard deviation of its weights."""

    width: int
    heads: int
    inner: int
    tokens: int
    blocks: int
    std: float

    @property
    def head_width(self) -> int:
        """How many dimensions a head has."""
        return self.width // self.heads


def check_place(architecture: Architecture, place: str) -> None:
    """Refuse drift in a bias that the block does not have."""
    if place != "norm-bias" or (architecture.pre_norm and architecture.norm_bias):
        return
    if architecture.pre_norm:
        why, hint = (
            "its norms have no bias",
            "query-bias or query-key-bias stand after the norm",
        )
    else:
        why = "it has no norm in front of attention"
        hint = "the bias of the norm before the block drifts its input: --at input"
    raise ConfigError(
        f"cannot put drift into the norm bias of {architecture.name}: {why}",
        hint=hint,
        slug="drift-place",
    )


def check_heads(architectures: tuple[str, ...], width: int, heads: int) -> None:
    """Refuse widths that heads, or rotary positions, do not divide."""
    if width % heads:
        raise ConfigError(
            f"expected a width that {heads} heads divide, got {width}",
            hint=f"--width {max(1, round(width / heads)) * heads}, or another --heads",
            slug="drift-width",
        )
    for name in architectures:
        turned = int(width // heads * ARCHITECTURES[name].rotary)
        if turned % 2 or (ARCHITECTURES[name].rotary and not turned):
            raise ConfigError(
                f"expected an even number of rotary dimensions per head of {name}, "
                f"got {turned} of {width // heads}",
                hint="make the width of a head a multiple of 8",
                slug="drift-width",
            )
