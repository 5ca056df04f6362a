"""One untrained block, or a stack, fed drifting input: what it does to cosines and scores."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import pairwise
from math import isfinite, sqrt
from typing import Any

import torch
from torch import Tensor, nn

from isoscope.capture.attention import observe_attention
from isoscope.capture.model.quiet import quiet
from isoscope.dataclass import dataclass
from isoscope.errors import UndefinedError
from isoscope.lab.drift.architecture import ARCHITECTURES, QUANTITIES, Architecture, Shape

ROWS = 1024  # queries whose scores are in memory at once
Values = dict[str, float]  # one per quantity


@dataclass(frozen=True)
class Blocks:
    """A stack of untrained blocks, and what they are called with."""

    architecture: Architecture
    shape: Shape
    model: nn.Module
    layers: tuple[nn.Module, ...]

    @torch.no_grad()
    def run(self, rows: Tensor) -> list[Values]:
        """Return the quantities of every block for an input of (tokens, width)."""
        heads: dict[str, Tensor] = {}

        def observe(_module: nn.Module, part: str, tensor: Tensor) -> None:
            heads[part] = tensor[0]  # (heads, tokens, head width)

        found: list[Values] = []
        keywords = self._positions(rows)
        with observe_attention(self.model, self.model.modules(), observe):
            for layer in self.layers:
                heads.clear()
                out = layer(rows[None], **keywords)
                out = (out[0] if isinstance(out, tuple) else out)[0]
                found.append(self._measure(rows, heads, out))
                rows = out
        return found

    def _positions(self, rows: Tensor) -> dict[str, Any]:
        if not self.architecture.rotary:
            return {}
        rotary: Any = self.model.rotary_emb
        at = torch.arange(len(rows))[None]
        return {"position_embeddings": rotary(rows[None], at)}

    def _measure(self, rows: Tensor, heads: dict[str, Tensor], out: Tensor) -> Values:
        attended, spread, entropy, largest = attend(
            heads["q"], heads["k"], heads["v"], causal=self.architecture.causal
        )
        values = (
            mean_cosine(rows), mean_cosine(attended), mean_cosine(out),
            mean_norm(rows), mean_norm(out), spread, entropy, largest,
        )  # fmt: skip
        if not all(map(isfinite, values)):
            raise UndefinedError(
                f"the states of an untrained {self.architecture.name} are NaN or infinite",
                hint="take smaller --norms, or a smaller --std",
                slug="drift-infinite",
            )
        return dict(zip(QUANTITIES, values, strict=True))


def build(name: str, shape: Shape, seed: int, *, biases: bool = False) -> Blocks:
    """Return untrained blocks of an architecture, as transformers initialises them.

    With `biases`, queries and keys have a bias also where the published config has none.
    """
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        model, layers = _build_model(name, shape, biases)
    model.eval().requires_grad_(False)
    return Blocks(ARCHITECTURES[name], shape, model, tuple(layers))


def attend(
    query: Tensor, key: Tensor, value: Tensor, *, causal: bool
) -> tuple[Tensor, float, float, float]:
    """Return attention's output before its projection, and three statistics of its scores.

    The statistics are means over heads and queries with at least two visible keys: standard
    deviation of scores, entropy over the log of the number of visible keys, and largest
    probability. Scores of at most 1024 queries of one head are in memory at once.
    """
    heads, tokens, width = query.shape
    sums = torch.zeros(3, dtype=torch.float64)
    attended = torch.empty_like(query)
    for head in range(heads):
        for start in range(0, tokens, ROWS):
            rows = slice(start, start + ROWS)
            scores = (query[head, rows] @ key[head].T) / sqrt(width)  # (rows, keys)
            visible = torch.ones_like(scores, dtype=torch.bool)
            if causal:
                visible = visible.tril(start)
            logs = scores.masked_fill(~visible, -torch.inf).log_softmax(-1)
            share = logs.exp()
            attended[head, rows] = share @ value[head]
            count = visible.sum(-1)
            several = count > 1
            mean = scores.mul(visible).sum(-1, keepdim=True) / count[:, None]
            variance = ((scores - mean) * visible).square().sum(-1) / count
            entropy = -(share * logs.masked_fill(~visible, 0.0)).sum(-1)
            relative = entropy[several] / count[several].log()
            for at, each in enumerate(
                (variance[several].sqrt(), relative, share.amax(-1)[several])
            ):
                sums[at] += each.double().sum()
    queries = heads * (tokens - 1 if causal else tokens)
    spread, entropy, largest = (sums / queries).tolist()
    return attended.transpose(0, 1).reshape(tokens, -1), spread, entropy, largest


def mean_cosine(rows: Tensor) -> float:
    """Return the mean cosine over all pairs of different rows."""
    units = nn.functional.normalize(rows.double(), dim=-1)
    total = units.sum(0)
    count = len(rows)
    return float((total @ total - units.square().sum()) / (count * (count - 1)))


def mean_norm(rows: Tensor) -> float:
    """Return the norm of the mean row."""
    return float(rows.double().mean(0).norm())


@contextmanager
def drifting(blocks: Blocks, place: str, vectors: tuple[Tensor, Tensor]) -> Generator[None]:
    """Put drift into the biases of the first block while the context lasts.

    A norm takes the first vector, queries the first and keys the second.
    """
    targets = {
        "norm-bias": [(_norm_bias, 0)],
        "query-bias": [(_query_bias, 0)],
        "key-bias": [(_key_bias, 1)],
        "query-key-bias": [(_query_bias, 0), (_key_bias, 1)],
    }.get(place, [])
    layer = blocks.layers[0]
    biases = [
        (find(blocks.architecture, blocks.shape, layer), vectors[at]) for find, at in targets
    ]
    try:
        for bias, vector in biases:
            bias.copy_(vector.reshape(bias.shape))
        yield
    finally:
        for bias, _ in biases:
            bias.zero_()


def find_fixed_point(
    excess: Callable[[float], float], norms: list[float], closeness: float = 1e-3
) -> float | None:
    """Return where the norm of the mean leaves a block as it entered; None where nowhere.

    `excess` is the norm out less the norm in. The first change from growing to shrinking
    between two norms is narrowed down by the Illinois method.
    """
    values = [(norm, excess(norm)) for norm in sorted(norms)]
    for (low, above), (high, below) in pairwise(values):
        if not above >= 0 > below:
            continue
        side, middle = 0, low
        while high - low > closeness * high:
            middle = (low * below - high * above) / (below - above)
            here = excess(middle)
            if abs(here) <= closeness * 0.1 * middle:
                break
            if here >= 0:
                below = below / 2 if side > 0 else below
                low, above, side = middle, here, 1
            else:
                above = above / 2 if side < 0 else above
                high, below, side = middle, here, -1
        return middle
    return None


def _norm_bias(_architecture: Architecture, _shape: Shape, layer: Any) -> Tensor:
    names = ("ln_1", "input_layernorm", "layernorm_before")
    return next(getattr(layer, name) for name in names if hasattr(layer, name)).bias


def _query_bias(architecture: Architecture, shape: Shape, layer: Any) -> Tensor:
    return _head_bias(architecture, shape, layer, 0)


def _key_bias(architecture: Architecture, shape: Shape, layer: Any) -> Tensor:
    return _head_bias(architecture, shape, layer, 1)


def _head_bias(architecture: Architecture, shape: Shape, layer: Any, part: int) -> Tensor:
    """Return the bias of queries or keys, as a view that can be written to."""
    match architecture.name:
        case "bert":
            inner = layer.attention.self
            return (inner.query, inner.key)[part].bias
        case "gpt2":
            return layer.attn.c_attn.bias.view(3, shape.width)[part]
        case "gpt_neox":  # (heads, 3, head width)
            whole = layer.attention.query_key_value.bias
            return whole.view(shape.heads, 3, shape.head_width)[:, part]
        case "llama":
            return (layer.self_attn.q_proj, layer.self_attn.k_proj)[part].bias
        case _:  # vit and wav2vec2
            names = (
                ("q_proj", "k_proj") if hasattr(layer.attention, "q_proj") else ("query", "key")
            )
            return getattr(layer.attention, names[part]).bias


# What each architecture is called in transformers, and the settings that are its own. No
# vocabulary, no positions and no feature extractor that the blocks do not need.
_OWN: dict[str, tuple[str, Callable[[Shape, bool], dict[str, object]]]] = {
    "bert": ("Bert", lambda _s, _b: {"vocab_size": 1, "pad_token_id": None}),
    "gpt2": ("GPT2", lambda s, _b: {"vocab_size": 1, "n_positions": 1, "n_inner": s.inner}),
    "gpt_neox": ("GPTNeoX", lambda _s, _b: {"vocab_size": 1}),
    "llama": ("Llama", lambda _s, b: {"vocab_size": 1, "attention_bias": b}),
    "vit": ("ViT", lambda _s, _b: {"image_size": 2, "patch_size": 2}),
    "wav2vec2": (
        "Wav2Vec2",
        lambda s, _b: {
            "conv_dim": (8,),
            "conv_stride": (1,),
            "conv_kernel": (1,),
            "num_conv_pos_embeddings": 2,
            "num_conv_pos_embedding_groups": s.heads,
        },
    ),
}


def _build_model(name: str, shape: Shape, biases: bool) -> tuple[nn.Module, Any]:
    """Return a model of transformers with random weights, and its blocks."""
    import transformers

    kind, own = _OWN[name]
    config: Any = getattr(transformers, f"{kind}Config")(
        hidden_size=shape.width,
        num_hidden_layers=shape.blocks,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
        initializer_range=shape.std,
        attn_implementation="sdpa",  # without a mask it is causal where the module is
        **own(shape, biases),
    )
    model: Any = getattr(transformers, f"{kind}Model")(config)
    stack = getattr(model, "encoder", model)
    names = ("layers", "layer", "h")
    return model, next(getattr(stack, each) for each in names if hasattr(stack, each))
