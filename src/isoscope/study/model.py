"""A model and a corpus, as specs name them, what is opened from them, and document states."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, cast, get_args

from isoscope.dataclass import dataclass
from isoscope.registry import unknown
from isoscope.site import DECODER, Site
from isoscope.source.corpus import open_corpus
from isoscope.source.corpus.corpus import Corpus
from isoscope.study.option import Part, about
from isoscope.study.run import need_torch

if TYPE_CHECKING:
    from torch import Tensor

    from isoscope.capture.model.load import Loaded
    from isoscope.capture.sites import Sites

At = Literal["first", "last", "mean"]
PLACES: tuple[At, ...] = get_args(At)
_MODES = {"first": "cls", "last": "last", "mean": "mean"}  # as sentence-transformers call them
CORPUS = (
    "Text (one document per line), a folder, jsonl, parquet, csv; token ids (npy); audio or "
    "images; - for stdin. Default: the bundled text."
)


class LoadSpec(Part, frozen=True, kw_only=True):
    """How a model, or each checkpoint of a series, is loaded."""

    dtype: Annotated[
        str | None,
        about("Precision: float32, bfloat16 or float16", "D", default="float32", local=True),
    ] = None
    device: Annotated[str, about("Device: cpu, cuda, cuda:1 or mps.", "D", local=True)] = "cpu"
    trust_remote_code: Annotated[
        bool, about("Run code that comes with the model.", local=True)
    ] = False


class ModelSpec(LoadSpec, frozen=True, kw_only=True):
    """Which model, and how it is loaded."""

    model: Annotated[
        str | None,
        about(
            "A folder, a GGUF file, or a name on the hub with @revision.",
            "MODEL",
            argument=True,
            path=True,
            live=True,
        ),
    ]


class CorpusSpec(Part, frozen=True, kw_only=True):
    """Which documents."""

    corpus: Annotated[
        str | None, about(CORPUS, "[CORPUS]", argument=True, path=True, live=True)
    ] = None
    column: Annotated[str | None, about("The column with the texts.", "C", local=True)] = None


class WideCorpusSpec(CorpusSpec, frozen=True, kw_only=True):
    """Documents of any kind, as surveys take them."""

    target: Annotated[
        str | None,
        about("The column with transcripts or targets, for decoders.", "C", local=True),
    ] = None
    id: Annotated[
        str | None, about("The column with the ids of the documents.", "C", local=True)
    ] = None
    per: Annotated[
        str | None,
        about("What one document is: a line, or a whole file.", "line|file", local=True),
    ] = None
    kind: Annotated[
        str | None,
        about("Kind of the files: text, tokens, audio or image.", "KIND", local=True),
    ] = None
    skip_bad: Annotated[
        bool, about("Drop and count documents that cannot be read.", local=True)
    ] = False


class LabelledCorpusSpec(WideCorpusSpec, frozen=True, kw_only=True):
    """Documents that may have a class each."""

    label: Annotated[
        str | None, about("The column with the class of each document.", "C", local=True)
    ] = None


class Seed(Part, frozen=True, kw_only=True):
    """The one seed of all random choices."""

    seed: Annotated[
        int,
        about("Seed of documents, halves, groups and samples.", "N", least=0, most=2**63 - 1),
    ] = 0


@dataclass(frozen=True)
class ModelSites:
    """A model that is loaded, and what there is to listen to in it."""

    loaded: "Loaded"
    sites: "Sites"

    @property
    def last(self) -> str:
        """The stack whose states become the output."""
        stacks = {Site.parse(name).stack for name in self.sites.names}
        return DECODER if DECODER in stacks else ""

    def site(self, family: str, part: str = "") -> str:
        """Return the name of a site in that stack: `embed`, or `norm` with its part."""
        return str(Site(family, part=part, stack=self.last))


def open_model(
    spec: ModelSpec,
    *,
    live: object = None,
    device_map: str | None = None,
    untrained: bool = False,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> ModelSites:
    """Load the model that a spec names and find its sites; a live one is taken as it is."""
    if live is not None:
        from isoscope.capture.model.sharded import refuse_sharded

        subject = subject_of(live)
        refuse_sharded(subject.loaded.body)
        return subject
    return load_model(
        spec.model or "",
        dtype=spec.dtype,
        device=spec.device,
        device_map=device_map,
        trust_remote_code=spec.trust_remote_code,
        untrained=untrained,
        seed=seed,
        say=say,
    )


def subject_of(model: object) -> ModelSites:
    """Return a model with its sites: a folder, GGUF file, hub name, or a loaded one.

    Anything that has `loaded` and `sites` is taken as it is, so that several experiments
    share one model.
    """
    if isinstance(model, ModelSites):
        return model
    if hasattr(model, "loaded") and hasattr(model, "sites"):
        opened = cast(ModelSites, model)
        return ModelSites(opened.loaded, opened.sites)
    if isinstance(model, str | os.PathLike):
        return load_model(cast("str | os.PathLike[str]", model))
    if hasattr(model, "body") and hasattr(model, "identity"):
        return _with_sites(cast("Loaded", model))
    raise TypeError(f"expected a path, a hub name or a loaded model, got {type(model)}")


def load_model(
    model: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    device: str = "cpu",
    device_map: str | None = None,
    trust_remote_code: bool = False,
    untrained: bool = False,
    seed: int = 0,
    say: Callable[[str], None] | None = None,
) -> ModelSites:
    """Load a model and find its sites."""
    need_torch()
    from isoscope.capture.model.load import load

    return _with_sites(
        load(
            model,
            dtype=dtype,
            device=device,
            device_map=device_map,
            trust_remote_code=trust_remote_code,
            untrained=untrained,
            seed=seed,
            say=say,
        )
    )


def _with_sites(loaded: "Loaded") -> ModelSites:
    import torch

    from isoscope.capture.feed import sample_inputs
    from isoscope.capture.model.folder import first_pass
    from isoscope.capture.sites import Sites

    inputs = sample_inputs(loaded)

    def run() -> None:
        with torch.inference_mode(), first_pass(loaded.name):
            loaded.body(**inputs)

    return ModelSites(loaded, Sites.discover(loaded.model, loaded.body, run))


def choose_state(subject: ModelSites, at: str | None, *, as_pooled: bool = False) -> At:
    """Return which state to take: the one named, or the usual one of the model.

    That is the first token of models with a [CLS] token and the last of others; with
    `as_pooled`, a model that pools by itself is taken as it does.
    """
    if at is not None and at not in PLACES:
        raise unknown("place of a state", at, PLACES)
    mode = subject.loaded.pooling.mode if as_pooled and subject.loaded.pooling else ""
    cls = getattr(subject.loaded.tokenizer, "cls_token_id", None)
    usual = "last" if cls is None else "first"
    name = at or next((place for place, each in _MODES.items() if each == mode), usual)
    return next(place for place in PLACES if place == name)


def take_states(states: "Tensor", real: "Tensor", at: At) -> "Tensor":
    """Return one state per document, (documents, d), from (documents, positions, d)."""
    from isoscope.capture.model.pooling import pool_states

    return pool_states(_MODES[at], states, real)


def model_content(found: ModelSites) -> dict[str, str]:
    """Return the fingerprints of a model."""
    identity: dict[str, object] = found.loaded.identity
    names = ("sha", "config", "tokenizer", "dtype", "untrained", "seed")
    words = {"sha": "model", "config": "model config", "seed": "seed of random weights"}
    return {words.get(name, name): str(identity[name]) for name in names}


def open_documents(spec: CorpusSpec, live: object = None, *, length: int = 512) -> Corpus:
    """Open the corpus that a spec names."""
    if isinstance(live, Corpus):
        return live
    wide = spec if isinstance(spec, WideCorpusSpec) else WideCorpusSpec()
    return open_corpus(  # what is live is checked as it is read
        spec.corpus if live is None else cast("str | os.PathLike[str] | Sequence[str]", live),
        column=spec.column,
        target=wide.target,
        id=wide.id,
        per=cast(Literal["line", "file"] | None, wide.per),  # checked there
        kind=wide.kind,
        skip_bad=wide.skip_bad,
        length=length,
        label=wide.label if isinstance(wide, LabelledCorpusSpec) else None,
    )


def list_sites(
    model: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[tuple[str, int, int]]:
    """Return the sites of a model as (family, how many, width)."""
    found = load_model(
        model, dtype=dtype, device=device, trust_remote_code=trust_remote_code, say=say
    )
    from isoscope.capture.sites import outline

    rows = outline(found.sites)
    if found.loaded.pooling is not None:
        rows.append(("pooled", 1, _pooled_width(found.loaded)))
    return rows


def _pooled_width(loaded: "Loaded") -> int:
    import torch

    from isoscope.capture.feed import sample_inputs
    from isoscope.capture.tap import first_tensor

    with torch.inference_mode():
        states = first_tensor(cast(object, loaded.body(**sample_inputs(loaded))))
    assert states is not None and loaded.pooling is not None
    everywhere = torch.ones(states.shape[:2], dtype=torch.bool, device=states.device)
    return int(loaded.pooling.pool(states, everywhere).shape[1])
