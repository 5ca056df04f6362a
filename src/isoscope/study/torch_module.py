"""Any torch module at modules that are named, over batches of the caller's own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias, TypeGuard, cast

from isoscope.accumulate import Groups
from isoscope.accumulate.survey import Survey
from isoscope.dataclass import dataclass
from isoscope.display import Results
from isoscope.engine import Notify
from isoscope.engine.base import Scratch, Ticks
from isoscope.engine.plan import Plan, Unit
from isoscope.errors import SourceError
from isoscope.study.keywords import function_of
from isoscope.study.measure_choice import Reads, read_state
from isoscope.study.option import about, has_entries, is_tuple
from isoscope.study.passes import ListenerOptions, SiteKinds, first_pass
from isoscope.study.run import Finished, Live, Planner, Runnable
from isoscope.study.spec import EngineOptions
from isoscope.types import Reading

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isoscope.capture.feed.base import Marks

Inputs: TypeAlias = object  # a tensor, a tuple of arguments, or a dictionary of them
Taps: TypeAlias = Mapping[str, str] | Sequence[str]


class AllBatches(Unit, frozen=True, tag=True):
    """All batches: a stream cannot be cut."""


class ModulePlan(Plan, frozen=True, kw_only=True):
    """One unit."""

    stages: tuple[tuple[AllBatches, ...], ...] = ((AllBatches(),),)

    def size(self, stage: int, unit: int) -> int | None:
        """Return None: a stream has no length."""


class ModuleSpec(Runnable[Results[Reading]], frozen=True, kw_only=True):
    """Measure any module at the modules named in `taps`, over batches of your own.

    A batch is what the module is called with (a tensor, a tuple or a dictionary), or a pair
    of that and a boolean mask (documents, positions). Each entry of a batch is a document.
    Measures that need a second pass are read off the sample.
    """

    command: ClassVar[str] = "survey_module"
    plans: ClassVar[type[Plan]] = ModulePlan
    worker_at: ClassVar[str] = "isoscope.study.torch_module:ModuleWorker"

    module: Annotated[
        str | None, about("A torch module.", "MODULE", argument=True, path=True, live=True)
    ]
    batches: Annotated[
        str | None,
        about(
            "What the module is called with.", "BATCHES", argument=True, path=True, live=True
        ),
    ]
    taps: Annotated[
        str | None,
        about("Modules to listen to, by name.", "TAPS", argument=True, path=True, live=True),
    ]
    reads: Reads = Reads()
    name: Annotated[str, about("Name of the run.", "NAME", local=True)] = "module"
    sinks: Annotated[
        float,
        about(
            "Call a token a norm sink above K times the median norm of its document.",
            "K",
            least=1.0,
        ),
    ] = 10.0
    seed: Annotated[
        int, about("Seed of halves, groups and samples.", "N", least=0, most=2**63 - 1)
    ] = 0


@dataclass(frozen=True)
class ModuleBatch:
    """A batch: what the module is called with, and what its rows are."""

    inputs: Inputs
    documents: tuple[str, ...]
    mask: "Tensor | None" = None  # (documents, positions), True where a position counts

    def marks(self, stack: str, length: int) -> "Marks":
        """Return which positions count; none is special."""
        import torch

        from isoscope.capture.feed.base import Marks

        shape = (len(self.documents), length)
        if self.mask is None:
            real = torch.ones(shape, dtype=torch.bool)
        elif tuple(self.mask.shape) == shape:
            real = self.mask.bool()
        else:
            raise SourceError(
                f"expected a mask of {shape[0]} x {length} positions, "
                f"got one of shape {tuple(self.mask.shape)}",
                hint="exclude sites whose positions are not those of the mask",
                slug="positions-unknown",
            )
        return Marks(real, torch.zeros_like(real), None)


class ModuleWorker(Planner[Results[Reading]]):
    """A module, its taps, and a stream of batches."""

    def __init__(self, spec: ModuleSpec, notify: Notify, live: Live) -> None:
        from isoscope.capture.sites import Sites

        self.spec = spec
        self.module = cast("nn.Module", live["module"])
        from isoscope.capture.model.sharded import refuse_sharded

        refuse_sharded(self.module)
        self.kinds = SiteKinds(spec.reads.names(), causes=False, named=spec.reads.measures)
        taps = cast(Taps, live["taps"]) if spec.taps is None else spec.taps.split(",")
        stream = iter(cast(Iterable[Inputs], live["batches"]))
        first = next(stream, None)
        if first is None:
            raise SourceError(
                "expected at least one batch, got none",
                hint="pass what the module is called with, one entry per call",
                slug="corpus-empty",
            )
        self.batches: Iterator[Inputs] = chain([first], stream)
        self.sites = Sites.of_modules(
            self.module, taps, lambda: self._call(_batch(first, 0).inputs)
        )

    def plan(self) -> ModulePlan:
        """Return the one unit."""
        return ModulePlan()

    def run(self, unit: object, scratch: Scratch, ticks: Ticks) -> Survey:
        """Sum what the taps say while the batches run."""
        survey = Survey()
        options = ListenerOptions(
            sinks=self.spec.sinks,
            seed=self.spec.seed,
            sketched=any(Groups in self.kinds.of(site) for site in self.sites.names),
        )
        listener = first_pass(survey, self.kinds, options)
        seen = 0
        for each in self.batches:
            batch = _batch(each, seen)
            seen += len(batch.documents)
            listener.begin(batch)
            with self.sites.listening(self.sites.names, listener.hear) as calls:
                calls.restart()
                self._call(batch.inputs)
            ticks.at(seen)
        return survey

    def finish(self, done: Finished) -> Results[Reading]:
        """Return the readings."""
        spec, options = self.spec, self.spec.reads.options(documents=True)
        return read_state(done.state, spec.reads.names(), spec.name, options, self.sites.names)

    def _call(self, inputs: Inputs) -> None:
        import torch

        with torch.inference_mode():
            if _is_mapping(inputs):
                self.module(**inputs)
            elif is_tuple(inputs):
                self.module(*inputs)
            else:
                self.module(inputs)


def _batch(batch: Inputs, start: int) -> ModuleBatch:
    """Return a batch with names for its documents: numbers, in the order they come."""
    inputs, mask = batch, None
    if is_tuple(batch) and len(batch) == 2 and _is_mask(batch[1]):
        inputs, mask = batch[0], batch[1]
    documents = tuple(f"document:{start + i}" for i in range(_size(inputs)))
    return ModuleBatch(inputs, documents, mask)


def _is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, Mapping)


def _is_mask(value: object) -> "TypeGuard[Tensor]":
    import torch

    return isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.ndim == 2


def _size(inputs: Inputs) -> int:
    import torch

    values = inputs.values() if _is_mapping(inputs) else inputs
    if isinstance(values, torch.Tensor) or not has_entries(values):
        values = [values]
    for value in values:
        if isinstance(value, torch.Tensor) and value.ndim:
            return value.size(0)  # nested tensors have no len
    raise SourceError(
        "expected a tensor in a batch, got none",
        hint="pass what the module is called with: a tensor, a tuple or a dictionary",
        slug="corpus-kind",
    )


survey_module = function_of(ModuleSpec, EngineOptions)
