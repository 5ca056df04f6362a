"""The matrices of a model whose rows are vectors of tokens: embedding and unembedding."""

from collections.abc import Callable

from torch import Tensor, nn

from isoscope.site import DECODER, EMBED, ENCODER, UNEMBED, Site


def token_matrices(model: nn.Module) -> dict[str, Tensor]:
    """Return `embed.weight` and `unembed.weight`, one row per token, where the model has them.

    An encoder-decoder whose halves have embeddings of their own has `enc.embed.weight` and
    `dec.embed.weight`. Patches and frames are embedded by convolutions: no matrix.
    """
    found = _embeddings(model)
    output = _matrix(model, "get_output_embeddings")
    if output is not None:
        found[UNEMBED] = output
    return found


def are_tied(model: nn.Module) -> bool:
    """Whether the unembedding is the embedding itself."""
    output = _matrix(model, "get_output_embeddings")
    return output is not None and any(_same(output, e) for e in _embeddings(model).values())


def _embeddings(model: nn.Module) -> dict[str, Tensor]:
    shared = _matrix(model, "get_input_embeddings")
    sides: dict[str, Tensor] = {}
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        for stack, name in ((ENCODER, "get_encoder"), (DECODER, "get_decoder")):
            half = _call(getattr(model, name, None))
            matrix = _matrix(half, "get_input_embeddings")
            if matrix is not None:
                sides[str(Site(EMBED, stack=stack))] = matrix
    values = list(sides.values())
    if len(values) == 1 or (len(values) == 2 and not _same(*values)):
        return sides
    return {} if shared is None else {EMBED: shared}


def _matrix(model: object, getter: str) -> Tensor | None:
    module = _call(getattr(model, getter, None))
    weight = getattr(module, "weight", None)
    if isinstance(weight, Tensor) and weight.ndim == 2:
        return weight.detach()
    return None


def _call(getter: Callable[[], object] | None) -> object:
    try:
        return None if getter is None else getter()
    except (NotImplementedError, AttributeError):  # transformers, where there is none
        return None


def _same(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and first.data_ptr() == second.data_ptr()
