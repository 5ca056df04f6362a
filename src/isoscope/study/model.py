"""A model and a corpus, as specs name them, and what is opened from them."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

from isoscope.errors import SourceError
from isoscope.site import DECODER, Site
from isoscope.study.option import Part, about

if TYPE_CHECKING:
    from collections.abc import Callable

    from isoscope.capture.model.loaded import Loaded
    from isoscope.capture.sites import Sites
    from isoscope.source.corpus.corpus import Corpus

CORPUS = (
    "Text (one document per line), a folder, jsonl, parquet, csv; token ids (npy); audio or "
    "images; - for stdin. Without one: the bundled text."
)


class ModelSpec(Part, frozen=True, kw_only=True):
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
    dtype: Annotated[
        str | None, about("float32, bfloat16 or float16", "D", default="float32", local=True)
    ] = None
    device: Annotated[str, about("cpu, cuda, cuda:1, mps.", "D", local=True)] = "cpu"
    trust_remote_code: Annotated[
        bool, about("Run code that comes with the model.", local=True)
    ] = False


class CorpusSpec(Part, frozen=True, kw_only=True):
    """Which documents."""

    corpus: Annotated[
        str | None, about(CORPUS, "[CORPUS]", argument=True, path=True, live=True)
    ] = None
    column: Annotated[str | None, about("The column of texts.", "C", local=True)] = None


class WideCorpusSpec(CorpusSpec, frozen=True, kw_only=True):
    """Documents of any kind, as surveys take them."""

    target: Annotated[
        str | None,
        about("The column of transcripts or targets, for decoders.", "C", local=True),
    ] = None
    id: Annotated[str | None, about("The column of document ids.", "C", local=True)] = None
    per: Annotated[
        str | None,
        about(
            "What a document of a text is: a line, or a whole file.", "line|file", local=True
        ),
    ] = None
    kind: Annotated[
        str | None, about("What files are: text, tokens, audio or image.", "KIND", local=True)
    ] = None
    skip_bad: Annotated[
        bool, about("Drop and count documents that cannot be read.", local=True)
    ] = False


class Seed(Part, frozen=True, kw_only=True):
    """The one seed of everything that is drawn."""

    seed: Annotated[
        int,
        about("Chooses documents, halves, groups and samples.", "N", least=0, most=2**63 - 1),
    ] = 0


@dataclass(frozen=True)
class Subject:
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
    live: Any = None,
    device_map: str | None = None,
    untrained: bool = False,
    seed: int = 0,
    say: "Callable[[str], None] | None" = None,
) -> Subject:
    """Load the model that a spec names and find its sites; a live one is taken as it is."""
    if live is not None:
        return subject_of(live)
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


def subject_of(model: Any, **options: Any) -> Subject:
    """Return a model with its sites: a folder, GGUF file, hub name, or a loaded one.

    Anything that has `loaded` and `sites` is taken as it is, so that several experiments
    share one model. The options go to the loader: `dtype`, `device`, `untrained` …
    """
    if isinstance(model, Subject):
        return model
    if hasattr(model, "loaded") and hasattr(model, "sites"):
        return Subject(model.loaded, model.sites)
    if isinstance(model, str | os.PathLike):
        return load_model(model, **options)
    if hasattr(model, "body") and hasattr(model, "identity"):
        return _with_sites(model)
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
    say: "Callable[[str], None] | None" = None,
) -> Subject:
    """Load a model and find its sites."""
    need_torch()
    from isoscope.capture.model.load import load

    loaded = load(
        model,
        dtype=dtype,
        device=device,
        device_map=device_map,
        trust_remote_code=trust_remote_code,
        untrained=untrained,
        seed=seed,
        say=say,
    )
    return _with_sites(loaded)


def _with_sites(loaded: "Loaded") -> Subject:
    import torch

    from isoscope.capture.feed import sample_inputs
    from isoscope.capture.sites import Sites

    inputs = sample_inputs(loaded)

    def run() -> None:
        with torch.inference_mode():
            loaded.body(**inputs)

    return Subject(loaded, Sites.found(loaded.model, loaded.body, run))


def model_content(found: Subject) -> dict[str, str]:
    """Return the fingerprints of a model."""
    identity = found.loaded.identity
    names = ("sha", "config", "tokenizer", "dtype", "untrained", "seed")
    words = {"sha": "model", "config": "model config", "seed": "seed of random weights"}
    return {words.get(name, name): str(identity[name]) for name in names}


def need_torch(who: str = "a survey") -> None:
    """Refuse to begin where the packages of models are missing."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise SourceError(
                f"{who} needs {package}, got none",
                hint="pip install 'isoscope[hf]'",
                slug="extra-missing",
            )


def open_documents(spec: CorpusSpec, live: Any = None, **more: Any) -> "Corpus":
    """Open the corpus that a spec names."""
    from isoscope.source.corpus import open_corpus
    from isoscope.source.corpus.corpus import Corpus

    if isinstance(live, Corpus):
        return live
    where = spec.corpus if live is None else live
    return open_corpus(where, column=spec.column, **more)
