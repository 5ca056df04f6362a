"""The verb of any torch module: sites given by name, batches given as they are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from isoscope.errors import SourceError
from isoscope.verbs.answer import answered, checked_seed, chosen

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isoscope.report import Results
    from isoscope.types import Reading


@dataclass(frozen=True)
class Given:
    """A batch: what the module is called with, and what its rows are."""

    inputs: Any  # a tensor, a tuple of arguments, or a dictionary of them
    documents: tuple[str, ...]
    mask: "Tensor | None" = None  # (documents, positions), True where a position counts

    def marks(self, prefix: str, length: int) -> Any:
        """Return which positions count; none is special."""
        import torch

        from isoscope.capture.feed.batch import Marks

        shape = (len(self.documents), length)
        if self.mask is None:
            real = torch.ones(shape, dtype=torch.bool)
        elif tuple(self.mask.shape) == shape:
            real = self.mask.bool()
        else:
            raise SourceError(
                f"expected a mask of {shape[0]} x {length} positions, "
                f"got one of shape {tuple(self.mask.shape)}",
                hint="leave out sites whose positions are not those of the mask",
                slug="positions-unknown",
            )
        return Marks(real, torch.zeros_like(real), None)


def survey_module(
    module: "nn.Module",
    batches: Iterable[Any],
    taps: Mapping[str, str] | Sequence[str],
    *,
    measures: Sequence[str] | None = None,
    name: str = "module",
    sinks: float = 10.0,
    zeta: float = 0.2,
    as_published: bool = False,
    seed: int = 0,
) -> "Results[Reading]":
    """Measure any module at the modules named in `taps`, over batches of your own.

    A batch is what the module is called with (a tensor, a tuple or a dictionary), or a pair
    of that and a boolean mask (documents, positions). Each entry of a batch is a document.
    Measures that need a second pass are read off the sample.
    """
    import torch

    from isoscope.accumulate import Groups
    from isoscope.capture.listener import Listener
    from isoscope.capture.sites import Sites
    from isoscope.survey import SECOND_PASS, Survey, kinds_for

    names = chosen(measures)
    checked_seed(seed)
    kinds = tuple(kind for kind in kinds_for(names) if kind not in SECOND_PASS)
    stream = iter(batches)
    first = next(stream, None)
    if first is None:
        raise SourceError(
            "expected at least one batch, got none",
            hint="give what the module is called with, one entry for each call",
            slug="corpus-empty",
        )

    def call(inputs: Any) -> None:
        with torch.inference_mode():
            if isinstance(inputs, Mapping):
                module(**inputs)
            else:
                module(*inputs) if isinstance(inputs, tuple) else module(inputs)

    sites = Sites.named(module, taps, lambda: call(_given(first, 0).inputs))
    survey = Survey()
    listener = Listener(
        lambda site, row_class, block: survey.update((site, row_class), kinds, block),
        survey.spoil,
        lambda site, variant, met: survey.meet(
            (site, variant), met, width=met[0].units.shape[1], folded=False
        ),
        times=sinks,
        seed=seed,
        sketched=Groups in kinds,
    )
    seen = 0
    for batch in chain([first], stream):
        given = _given(batch, seen)
        seen += len(given.documents)
        listener.begin(given)
        with sites.listening(sites.names, listener.hear) as calls:
            calls.restart()
            call(given.inputs)
    options = {"zeta": zeta, "as_published": as_published, "documents": True}
    readings = answered(survey, names, name, options)
    readings.spoilt = dict(survey.trouble)
    return readings


def _given(batch: Any, start: int) -> Given:
    """Return a batch with names for its documents: numbers, in the order they come."""
    mask = None
    if isinstance(batch, tuple) and len(batch) == 2 and _is_mask(batch[1]):
        batch, mask = batch
    documents = tuple(f"document:{start + i}" for i in range(_size(batch)))
    return Given(batch, documents, mask)


def _is_mask(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.ndim == 2


def _size(inputs: Any) -> int:
    import torch

    values = inputs.values() if isinstance(inputs, Mapping) else inputs
    values = [inputs] if isinstance(inputs, torch.Tensor) else values
    for value in values:
        if isinstance(value, torch.Tensor) and value.ndim:
            return len(value)
    raise SourceError(
        "expected a tensor in a batch, got none",
        hint="give what the module is called with: a tensor, a tuple or a dictionary",
        slug="corpus-kind",
    )
