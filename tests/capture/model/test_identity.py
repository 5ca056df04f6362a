"""Fingerprints see every change and no move."""

import json
import shutil
from hashlib import sha256

import torch
import transformers

from isoscope.capture.model.load import load


def test_it_names_everything_that_could_change_a_reading(tiny):
    folder = tiny("gpt2")
    loaded = load(folder)
    given = loaded.identity
    assert given == {
        "model": "gpt2",
        "sha": sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "revision": None,
        "config": sha256((folder / "config.json").read_bytes()).hexdigest(),
        "tokenizer": given["tokenizer"],
        "dtype": "float32",
        "architecture": "GPT2LMHeadModel",
        "parameters": sum(p.numel() for p in loaded.model.parameters()),
        "untrained": False,
        "seed": None,
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }
    assert json.loads(json.dumps(given)) == given


def test_the_same_model_elsewhere_has_the_same_fingerprints(tiny, tmp_path):
    first = load(tiny()).identity
    shutil.copytree(tiny(), tmp_path / "copy")
    assert load(tmp_path / "copy").identity == {**first, "model": "copy"}


def test_another_tokenizer_is_seen(tiny):
    folder = tiny()
    before = load(folder).identity
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace('"Lowercase"', '"NFC"'))
    after = load(folder).identity
    assert before["tokenizer"] != after["tokenizer"]
    assert before["sha"] == after["sha"]


def test_no_tokenizer_has_no_fingerprint(tiny):
    assert load(tiny(tokenizer=False)).identity["tokenizer"] is None


def test_random_weights_say_so_with_their_seed(tiny):
    given = load(tiny(), untrained=True, seed=3).identity
    assert (given["untrained"], given["seed"]) == (True, 3)
