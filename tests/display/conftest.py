"""A fixed list of readings, with everything in it that a format can get wrong."""

import importlib.util
from pathlib import Path

import pytest

from isoscope.display import READINGS, Results
from isoscope.types import Reading

BIASED = "plain value: biased by more than its interval"
FEW = "n < 10 d"


def reading(measure, value, low=None, high=None, warnings=(), **other):
    fields = {"run": "notes", "site": "rows", "variant": "all", "group": "", "step": None}
    sizes = {"n": 5000, "d": 768}
    ends = {"low": low, "high": high, "warnings": warnings}
    return Reading(**{**fields, "measure": measure, "value": value, **ends, **sizes, **other})


@pytest.fixture
def make():
    return reading


@pytest.fixture
def readings():
    return Results(
        [
            reading("mean-cosine", 0.463123, 0.46102, 0.46523),
            reading("isoscore", -0.0214, -0.0301, -0.0102, (BIASED, FEW)),
            reading("participation", 1.2341e-5, 1.2141e-5, 1.2541e-5, (FEW,)),
            reading("alpha", 1.5),
        ],
        READINGS,
        left_out=["twonn: needs at least 3 distinct rows, got 2"],
        isotropic={("mean-cosine", 5000, 768): 0.0, ("isoscore", 5000, 768): 1.0},
    )


@pytest.fixture
def hostile():
    """Readings of a run whose names try to be obeyed."""
    name = "a\x1b[2J|<script>alert(1)</script>\n$\\write18{rm}$ `x` *y* _z_ \u202eb"
    return Results(
        [reading("isoscore", 0.5, run=name), reading("isoscore", 0.5, run="[b]")],
        READINGS,
        left_out=[name],
    )


def _exhibits():
    place = Path(__file__).with_name("exhibits.py")
    spec = importlib.util.spec_from_file_location("exhibits", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def exhibits():
    """The module of made-up runs."""
    return _exhibits()


@pytest.fixture(scope="session")
def demo(exhibits):
    """One run with something for every section."""
    return exhibits.exhibit(bands=exhibits.BANDS)


@pytest.fixture(scope="session")
def surveyed(tiny_run):
    """A real survey with tokens and documents, as a page sees it."""
    from isoscope.exhibit.exhibit import exhibits as shown

    (exhibit,) = shown(tiny_run)
    return exhibit


HOSTILE_WORD = "</script><img/src=x/onerror=document.title='obeyed'>"


@pytest.fixture(scope="session")
def sunken(speaker, texts, tmp_path_factory):
    """The folder of a survey whose documents begin with a sink, a word that tries to be obeyed.

    Model, corpus and run have names that try the same.
    """
    import json
    import shutil

    import isoscope as iso

    name = "<img src=x onerror=document.title='obeyed'>"
    folder = tmp_path_factory.mktemp("sunken")
    model = folder / name
    shutil.copytree(speaker, model)
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    first = next(word for word in vocabulary if word.isalpha())
    tokenizer["model"]["vocab"] = {
        HOSTILE_WORD if word == first else word: number for word, number in vocabulary.items()
    }
    tokenizer["pre_tokenizer"] = {"type": "WhitespaceSplit"}
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    _pull(model, vocabulary[first])
    corpus = folder / f"{name}\u202e.txt"
    corpus.write_text("\n".join(f"{HOSTILE_WORD} {text}" for text in texts))
    iso.survey(model, corpus, output=folder / f"run {name}")
    return folder / f"run {name}"


def _pull(model, token):
    """Make the vector of one token a hundred times as long as the others."""
    from safetensors.torch import load_file, save_file

    weights = load_file(model / "model.safetensors")
    (name,) = [key for key in weights if key.endswith("wte.weight")]
    weights[name][token] *= 100
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
