"""The sites of a model: what there is to listen to, its token matrices, and listening."""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from isoscope.capture.attention import AttentionHead, HeadTrace, hear_heads
from isoscope.capture.discover import plan_taps
from isoscope.capture.stacks import Trace, find_stacks
from isoscope.capture.tap import Calls, Hear, Tap, listening, named_taps
from isoscope.dataclass import dataclass
from isoscope.errors import SourceError, UnknownNameError
from isoscope.registry import unknown
from isoscope.site import DECODER, EMBED, ENCODER, HEADS, UNEMBED, Site

ON_REQUEST = ("attn", "mlp", *HEADS, "grad", "gradw")  # families that the default excludes


@dataclass(frozen=True)
class Sites:
    """Every site of a model, in a fixed order, each with its width."""

    DEFAULT: ClassVar[tuple[str, ...]] = (
        "resid", "norm", "embed", "embed.weight", "unembed.weight"
    )  # fmt: skip

    body: nn.Module
    widths: dict[str, int]
    taps: dict[str, Tap]
    heads: dict[str, AttentionHead] = field(default_factory=dict[str, AttentionHead])
    weights: dict[str, Tensor] = field(default_factory=dict[str, Tensor])  # matrices, by site

    @classmethod
    def discover(cls, model: nn.Module, body: nn.Module, run: Callable[[], object]) -> "Sites":
        """Return the sites found by tracing one small forward pass of the body.

        The model has the matrices; `run` calls the body, which is the model or
        the part of it without a head, on small real inputs.
        """
        trace = Trace(body, find_stacks(body))
        head_trace = HeadTrace(trace)
        with head_trace.recording():
            taps = plan_taps(trace, run)
        heads, matrices = head_trace.heads(), token_matrices(model)
        found_widths = _hear_widths(body, list(taps.values()), run)
        widths = {site: each[-1] for site, each in found_widths.items()}
        widths |= {site: head.width for site, head in heads.items()}
        widths |= {site: matrix.shape[1] for site, matrix in matrices.items()}
        ordered = {site: widths[site] for site in sorted(widths, key=Site.parse)}
        return cls(body, ordered, taps, heads, matrices)

    @classmethod
    def of_modules(
        cls,
        model: nn.Module,
        modules: Mapping[str, str] | Sequence[str],
        run: Callable[[], object],
    ) -> "Sites":
        """Return the sites of any model at the modules to listen to."""
        taps = named_taps(model, modules)
        found_widths = _hear_widths(model, taps, run)
        silent = [tap for tap in taps if tap.site not in found_widths]
        if silent:
            raise _silent_modules(silent)
        widths: dict[str, int] = {}
        found: dict[str, Tap] = {}
        for tap in taps:
            calls = found_widths.get(tap.site, [])
            for call, width in enumerate(calls):  # numbered where there are several
                site = tap.site if len(calls) == 1 else f"{tap.site}.{call}"
                found[site] = replace(tap, site=site, call=call)
                widths[site] = width
        return cls(model, widths, found)

    @property
    def names(self) -> tuple[str, ...]:
        """All sites, in order."""
        return tuple(self.widths)

    @property
    def layers(self) -> dict[str, int]:
        """How many layers each family of sites has; heads are not counted."""
        sites = [Site.parse(name) for name in self.names]
        counts: dict[str, int] = {}
        for site in sites:
            if site.layer is not None and site.head is None:
                counts[site.group] = max(counts.get(site.group, 0), site.layer + 1)
        return counts

    def select(self, families: Sequence[str] = DEFAULT) -> tuple[str, ...]:
        """Return the sites that families name: "resid", "resid.3", "q.2", "enc.resid", "enc".

        "embed" is the stream before block 0 and the matrix, "unembed" the other matrix;
        "resid" takes the stages of a convolutional network too. A family that is named must
        exist; of the default every model has some.
        """
        sites = {name: Site.parse(name) for name in self.names}
        if tuple(families) == self.DEFAULT:
            return tuple(n for n, site in sites.items() if site.family not in ON_REQUEST)
        taken: set[str] = set()
        for family in families:
            here = {name for name, site in sites.items() if site.matches(family)}
            if not here:
                raise self._unknown_site(family)
            taken |= here
        return tuple(name for name in self.names if name in taken)

    @contextmanager
    def listening(
        self, sites: Sequence[str], hear: Hear, *, detach: bool = True
    ) -> Generator[Calls]:
        """Call `hear(site, tensor)` with (batch, positions, width), detached, not copied.

        Only what these sites need is tapped. Matrices are in `weights` and never reported.
        Tensors are the model's own and are good until `hear` returns. With `detach=False`
        they belong to the graph of the forward pass, so that a loss can be made of them.
        Call `restart()` on what this yields before each forward pass.
        """
        for site in sites:
            if site not in self.widths:
                raise self._unknown_site(site)
        names = list(dict.fromkeys(sites))
        taps = [self.taps[site] for site in names if site in self.taps]
        heads = [self.heads[site] for site in names if site in self.heads]
        calls = Calls()
        with (
            listening(self.body, taps, hear, calls, detach=detach),
            hear_heads(self.body, heads, hear, calls, detach=detach),
        ):
            yield calls

    def _unknown_site(self, name: str) -> UnknownNameError:
        families = dict.fromkeys(Site.parse(name).group for name in self.names)
        error = unknown("site", name, [*families, *self.names])
        if error.hint.startswith("did you mean"):
            error.hint += f" this model has: {', '.join(families)}"
        return error


def outline(sites: Sites) -> list[tuple[str, int, int]]:
    """Return (family, number of sites, width), one row per width that a family has."""
    rows = Counter((Site.parse(name).group, width) for name, width in sites.widths.items())
    return [(family, count, width) for (family, width), count in rows.items()]


def _silent_modules(taps: Sequence[Tap]) -> SourceError:
    """Return the error for modules that a forward pass does not call, or that give nothing."""
    names = ", ".join(repr(tap.module) for tap in taps)
    one = len(taps) == 1
    return SourceError(
        f"expected a tensor of every module in a forward pass, got none of {names}",
        hint=f"{'it is' if one else 'they are'} not run, or run by .forward(), which skips "
        "hooks: call the module itself, or name one around it or inside it that is called",
        slug="module-silent",
    )


def _hear_widths(
    body: nn.Module, taps: Sequence[Tap], run: Callable[[], object]
) -> dict[str, list[int]]:
    """Return the width of every call that a tap reports, by site, in the order of the taps."""
    widths: dict[str, list[int]] = {tap.site: [] for tap in taps}

    def hear(site: str, tensor: Tensor) -> None:
        widths[site].append(tensor.shape[-1])

    with torch.no_grad(), listening(body, taps, hear):
        run()
    return {site: each for site, each in widths.items() if each}


def token_matrices(model: nn.Module) -> dict[str, Tensor]:
    """Return `embed.weight` and `unembed.weight`, one row per token, where the model has them.

    An encoder-decoder whose halves have embeddings of their own has `enc.embed.weight` and
    `dec.embed.weight`. Patches and frames are embedded by convolutions: no matrix.
    """
    found = _embeddings(model)
    output = _matrix(model, "get_output_embeddings")
    return found if output is None else {**found, UNEMBED: output}


def are_tied(model: nn.Module) -> bool:
    """Whether the unembedding is the embedding itself."""
    output = _matrix(model, "get_output_embeddings")
    return output is not None and any(
        shares_memory(output, e) for e in _embeddings(model).values()
    )


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
    if len(values) == 1 or (len(values) == 2 and not shares_memory(*values)):
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


def shares_memory(first: Tensor, second: Tensor) -> bool:
    """Whether two matrices are one."""
    return first.shape == second.shape and first.data_ptr() == second.data_ptr()
