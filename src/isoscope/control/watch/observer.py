"""The numbers of a watch: sites of a model listened to in one pass.

Summaries and measures are those of a survey, without what only intervals and warnings need:
a training step cannot afford more.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor, nn

from isoscope.accumulate import Groups, Moments, Reservoir
from isoscope.accumulate.survey import Kind, Survey, variants
from isoscope.blas import one_blas_thread
from isoscope.capture.feed import Feed, Marks, PositionLayout, Prepared, feed_for
from isoscope.capture.listener import Listener, Marked
from isoscope.capture.model.pooling import MODES, Pooling, read_pooling
from isoscope.capture.tap import by_rows, first_tensor
from isoscope.control.listening import (
    EndPass,
    Pass,
    SiteListener,
    as_loaded,
    device_of,
    evaluating,
    recomputing,
    token_argument,
    wrap_method,
)
from isoscope.control.processes import World
from isoscope.dataclass import dataclass
from isoscope.errors import ConfigError
from isoscope.measures import MEASURES
from isoscope.registry import unknown
from isoscope.site import POOLED
from isoscope.study.model import CorpusSpec, open_documents
from isoscope.study.passes import ListenerOptions, SiteKinds, first_pass
from isoscope.study.reading import finalize_all, read_values
from isoscope.study.selection import prepare_document
from isoscope.types import Array

if TYPE_CHECKING:
    from isoscope.capture.model.tokenizer import Tokenizer

DEAD = "dead-dimensions"  # not a measure of the package: an alarm, and nothing to report
BATCH = 16  # held-out texts in a pass
_DEAD_SHARE = 1e-6  # of the mean variance, below which a dimension is dead
_ROUNDING = 1e-4  # of the mean variance, above what float32 sums leave of a constant
Warn = Callable[[str], None]


@dataclass(frozen=True)
class CallRows:
    """The rows of a pass as the model was called: all of them, but for padding."""

    documents: tuple[str, ...]
    mask: Tensor | None = None  # (documents, positions)
    tokens: Tensor | None = None  # (documents, positions)

    def marks(self, stack: str, length: int) -> Marks:
        """Return which positions are real; a mask of another shape says nothing about them."""
        _ = stack
        shape = (len(self.documents), length)
        real, tokens = (
            each if isinstance(each, Tensor) and each.shape == shape else None
            for each in (self.mask, self.tokens)
        )
        real = torch.ones(shape, dtype=torch.bool) if real is None else real.bool()
        return Marks(real, torch.zeros_like(real), tokens)


@dataclass(frozen=True)
class FeedRows:
    """The rows of a batch of texts; special tokens count like any other."""

    documents: tuple[str, ...]
    layout: PositionLayout
    keys: tuple[int, ...] | None = None  # hashes that identify the documents, as in a survey

    def marks(self, stack: str, length: int) -> Marks:
        """Return which positions are real; the model has one stack, whatever its name."""
        _ = stack
        marks = self.layout(length)
        return Marks(marks.real, torch.zeros_like(marks.real), marks.tokens)


@dataclass(frozen=True)
class ProbeBatch:
    """Some held-out texts, as the model is called with them."""

    inputs: Mapping[str, Tensor]
    name: str
    rows: Marked | None = None  # None: known from the call


@dataclass(frozen=True)
class Pooler:
    """The module whose output is pooled, and how."""

    module: nn.Module
    pooling: Pooling | None  # None: the output has the vectors

    def embed(
        self, output: object, arguments: tuple[object, ...], keywords: dict[str, object]
    ) -> Tensor | None:
        """Return the sentence embeddings (documents, width) of a pass."""
        if self.pooling is None:
            return cast(Mapping[str, Tensor], output).get("sentence_embedding")
        states = first_tensor(output)  # (documents, positions, width)
        if states is None or states.ndim != 3:
            return None
        mask = token_argument(self.module, arguments, keywords, "attention_mask")
        if mask is None or mask.shape != states.shape[:2]:
            mask = torch.ones(states.shape[:2], device=states.device)
        return self.pooling.pool(states, mask)


class Observer:
    """Listens to sites of a model, and reads measures off what was summed there."""

    def __init__(
        self,
        measures: Sequence[str],
        *,
        sites: Sequence[str],
        modules: Sequence[str] | None,
        pooling: str | None,
        join: bool,
        warn: Warn,
    ) -> None:
        self.measures = tuple(measures)
        self.families, self.modules, self.pooling = tuple(sites), modules, pooling
        self.join, self.warn = join, warn
        self._of_package = tuple(name for name in measures if name != DEAD)
        check_measures(self._of_package, by_token=modules is None)
        if pooling is not None and not {*pooling.split("+")} <= {*MODES.values()}:
            raise unknown("pooling", pooling, dict.fromkeys(MODES.values()))
        self._kinds = SiteKinds(
            self._of_package,
            causes=False,
            named=self._of_package,
            intervals=False,
            also=(Moments, Reservoir) if DEAD in measures else (),
        )
        self._sites: SiteListener | None = None
        self._pooler: Pooler | None = None

    @property
    def world(self) -> World:
        """The processes whose rows are read as one."""
        return World.current(self.join)

    def place(self, model: nn.Module) -> SiteListener:
        """Find the sites in a model by one small pass; the same model is looked at once."""
        if self._sites is None or not self._sites.fits(model):
            families = [each for each in self.families if each != POOLED]
            sites = SiteListener(model, families or ["resid"], self.modules)
            if not families and self.modules is None:
                sites.names = ()
            if POOLED in self.families and self.modules is None:
                self._pooler = find_pooler(model, sites.body, self.pooling, self.warn)
            self._sites = sites
        return self._sites

    @contextmanager
    def listening(
        self,
        model: nn.Module,
        into: Survey,
        name: str,
        rows: Marked | None = None,
        end: EndPass | None = None,
    ) -> Generator[None]:
        """Sum the sites in the next pass of the model, and in no other.

        Its documents are numbered under a name; `rows` where more is known of them.
        """
        sites = self.place(model)
        kinds = [kind for site in (*sites.names, POOLED) for kind in self._kinds.of(site)]
        # No row is a sink or special: all are of one class, which is summed once.
        options = ListenerOptions(sinks=inf, seed=0, sketched=Groups in kinds)
        one = _PassSums(first_pass(into, self._kinds, options), name, rows, sites, self.warn)
        with ExitStack() as stack:
            if self._pooler is not None:
                stack.callback(
                    wrap_method(self._pooler.module, "forward", partial(one.pool, self._pooler))
                )
            stack.enter_context(sites.listening(one.hear, end=end))
            yield

    def run(self, model: nn.Module, probes: Iterable[ProbeBatch]) -> Survey:
        """Sum the sites over held-out batches; training goes on as if nothing had run."""
        survey, body, device = Survey(), self.place(model).body, device_of(model)
        with evaluating(model), torch.no_grad():
            for probe in probes:
                inputs = {name: value.to(device) for name, value in probe.inputs.items()}
                with self.listening(model, survey, probe.name, probe.rows):
                    if self._pooler is not None and self._pooler.pooling is None:
                        self._pooler.module(inputs)
                    else:
                        body(**inputs)
        return survey

    def read(self, survey: Survey) -> tuple[dict[tuple[str, str], float], tuple[str, ...]]:
        """Return numbers by measure and site over all processes, and the sites without any.

        Rows of those sites are NaN or infinite, in this process or in another.
        """
        whole = self._of_all_processes(survey)
        lost, found = set(whole.trouble), dict[tuple[str, str], float]()
        for site, _, here in variants(whole.held):
            with one_blas_thread():  # its threads would wait for torch's
                summaries = finalize_all(here, intervals=False)
                values = read_values(summaries, self._of_package)
                if DEAD in self.measures and here[Moments].count > 1:
                    values[DEAD] = dead_dimensions(
                        summaries.of(Moments).covariance, summaries.of(Reservoir).rows
                    )
            if all(map(isfinite, values.values())):
                found |= {
                    (name, site): values[name] for name in self.measures if name in values
                }
            else:
                lost.add(site)
        return found, tuple(sorted(lost))

    def _of_all_processes(self, survey: Survey) -> Survey:
        """Return the sums of all processes; one without any rows takes part."""
        states = self.world.gather_objects(survey.to_state())
        if len(states) == 1:
            return survey
        whole = Survey()
        for meta, arrays in states:
            whole.merge(Survey.from_state(meta, arrays))
        return whole


class _PassSums:
    """One pass of a model: what its sites give is summed, without padding."""

    def __init__(
        self,
        listener: Listener,
        name: str,
        rows: Marked | None,
        sites: SiteListener,
        warn: Warn,
    ) -> None:
        self.listener, self.name, self.rows = listener, name, rows
        self.sites, self.warn = sites, warn
        self.seen: set[str] = set()  # sites that were summed
        self.begun: tuple[str, ...] | None = None  # documents that the listener has begun

    def hear(self, current: Pass | None, site: str, tensor: Tensor) -> None:
        """Sum what a site gives first: (documents, positions, width), a map, or vectors."""
        if site in self.seen or tensor.ndim < 2:
            return
        if current is None and not self.sites.named:  # which positions are padding is unknown
            self.warn(
                "the batch runs blocks of the model and not the model, so it cannot be "
                "watched; name modules= instead"
            )
            return
        self._begin_batch(len(tensor), current)
        self._sum(site, tensor)

    def pool(
        self,
        pooler: Pooler,
        forward: Callable[..., object],
        *arguments: object,
        **keywords: object,
    ) -> object:
        """Run the module that is pooled, and sum the sentence embeddings of its first pass."""
        output = forward(*arguments, **keywords)
        if POOLED not in self.seen and not recomputing():
            vectors = pooler.embed(output, arguments, keywords)
            if vectors is not None:
                self._begin_batch(len(vectors), None)
                self._sum(POOLED, vectors.detach())
        return output

    def _sum(self, site: str, tensor: Tensor) -> None:
        self.seen.add(site)
        # In the precision of the rows, also where training runs in a lower one.
        with torch.no_grad(), torch.autocast(tensor.device.type, enabled=False):
            if tensor.ndim == 2:
                self.listener.hear_whole(site, tensor)
            else:
                self.listener.hear(site, by_rows(self.sites.body, tensor))

    def _begin_batch(self, documents: int, current: Pass | None) -> None:
        if self.begun is not None and len(self.begun) == documents:
            return
        rows = self.rows
        if rows is None or len(rows.documents) != documents:
            names = tuple(f"{self.name}:{number}" for number in range(documents))
            known = (None, None) if current is None else (current.mask, current.tokens)
            rows = CallRows(names, *known)
        self.begun = rows.documents
        self.listener.begin(rows)


def dead_dimensions(covariance: Array, rows: Array) -> float:
    """Return the share of dimensions whose variance is below a millionth of the mean.

    Sums of float32 products leave rounding where a constant is far from zero, so the sampled
    rows decide about dimensions of small variance.
    """
    variances = np.diagonal(covariance)  # (d,)
    mean = variances.mean()
    low = rows[:, variances <= _ROUNDING * mean].astype(np.float64)  # (sample, some of d)
    return float((low.var(axis=0) <= _DEAD_SHARE * mean).sum() / len(variances))


def check_measures(names: Iterable[str], *, by_token: bool) -> None:
    """Refuse measures that are not known, or need what a training step does not have."""
    for name in names:
        if name not in MEASURES:
            raise unknown("watched measure", name, [*MEASURES, DEAD])
        kinds: tuple[Kind, ...] = MEASURES[name].reads.needs
        if MEASURES[name].second_pass:
            reason = "it needs a second pass over the same rows, and a training step runs once"
        elif not by_token and any(kind.by_token for kind in kinds):
            reason = "it needs tokens, and the rows of modules= have none"
        else:
            continue
        raise ConfigError(
            f"cannot watch {name}: {reason}",
            hint="leave it out of measures=; iso.survey reads it at a checkpoint",
            slug="watch-settings",
        )


def find_pooler(model: nn.Module, body: nn.Module, mode: str | None, warn: Warn) -> Pooler:
    """Return what pools the tokens of a model: a mode, itself, or as its folder says."""
    if mode is not None:
        return Pooler(body, Pooling(mode=mode))
    for module in model.modules():
        if any(each.__name__ == "SentenceTransformer" for each in type(module).__mro__):
            return Pooler(module, None)
    folder = Path(str(getattr(getattr(body, "config", None), "_name_or_path", "")))
    if (folder / "modules.json").is_file():
        _, found = read_pooling(folder, say=warn)
        if found is not None:
            return Pooler(body, found)
    raise ConfigError(
        f"expected a model that says how its tokens are pooled, got {type(model).__name__}",
        hint="pass pooling='mean', 'cls', 'last' or 'max', or train a SentenceTransformer",
        slug="pooling",
    )


def check_probes(probes: Sequence[object] | Mapping[str, object] | None) -> None:
    """Refuse one text or one batch instead of a list, and an empty list."""
    if isinstance(probes, str | Mapping):
        kind = "text" if isinstance(probes, str) else "batch"
        raise _bad_probes(f"expected a list of texts or batches to watch, got one {kind}")
    if probes is not None and not len(probes):
        raise _bad_probes("expected texts or batches to watch, got an empty list")


def probe_batches(
    probes: Sequence[object],
    body: nn.Module,
    tokenizer: "Tokenizer | None",
    *,
    length: int,
    tokens: int,
    world: World,
) -> list[ProbeBatch]:
    """Return batches of texts up to a number of tokens, every n-th text for one of n processes.

    Batches that are dictionaries of tensors already are taken as they are.
    """
    if all(isinstance(each, Mapping) for each in probes):
        given = cast(Sequence[Mapping[str, Tensor]], probes)
        numbered = [ProbeBatch(each, f"held-out:{number}") for number, each in enumerate(given)]
        return numbered[world.rank :: world.size]
    texts = [each for each in probes if isinstance(each, str)]
    if len(texts) < len(probes):
        raise _bad_probes("expected texts or batches to watch, got something else")
    if tokenizer is None:
        raise _bad_probes("expected a tokenizer for the texts to watch, got none")
    with evaluating(body), torch.no_grad():
        feed = feed_for(as_loaded(body, tokenizer), length=length)
    kept = _first_texts(texts, feed, tokens)
    if len(kept) < 2:
        raise _bad_probes(f"expected at least 2 texts of two tokens to watch, got {len(kept)}")
    groups: dict[int, list[Prepared]] = {}
    for each in sorted(kept[world.rank :: world.size], key=lambda one: one.length):
        groups.setdefault(0 if feed.mixes_lengths else each.length, []).append(each)
    batches = [
        feed.batch(group[at : at + BATCH])
        for group in groups.values()
        for at in range(0, len(group), BATCH)
    ]
    return [
        ProbeBatch(
            each.inputs, "held-out", FeedRows(each.documents, each.layouts[""], each.keys)
        )
        for each in batches
    ]


def _first_texts(texts: Sequence[str], feed: Feed, tokens: int) -> list[Prepared]:
    """Return the first texts, up to a number of tokens, made ready for the model."""
    kept: list[Prepared] = []
    if not any(text.strip() for text in texts):
        return kept
    corpus = open_documents(CorpusSpec(), texts)
    for ordinal in range(len(corpus)):
        prepared = prepare_document(corpus, feed, ordinal)
        if prepared is not None:
            kept.append(prepared)
            tokens -= prepared.length
        if tokens <= 0:
            break
    return kept


def _bad_probes(problem: str) -> ConfigError:
    return ConfigError(
        problem,
        hint="give a list of texts and the tokenizer, or dictionaries of tensors as the model "
        "takes them; or probes=None to watch training batches alone",
        slug="watch-probes",
    )
