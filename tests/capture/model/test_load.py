"""Loading as a whole: no traffic, no chatter, and the real models."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from isoscope.capture.model.load import load, need
from isoscope.errors import IsoscopeError

SOURCE = Path(__file__).parents[3] / "src"
CORPUS = "It was the best of times, it was the worst of times"


def run(code, *arguments):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


def test_a_local_folder_causes_no_traffic_and_no_chatter(tiny):
    """In a process that has imported control before, which loads no transformers."""
    code = (
        "import sys\n"
        "import isoscope\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
        "import isoscope.control\n"
        "assert 'transformers' not in sys.modules, 'control loads transformers'\n"
        "def listen(event, args):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo'): raise SystemExit(event)\n"
        "sys.addaudithook(listen)\n"
        "from isoscope.capture.model.load import load\n"
        "for folder in sys.argv[1:]: load(folder); load(folder, untrained=True)\n"
    )
    done = run(code, tiny("bert"), tiny("t5", tokenizer=False))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_a_missing_package_is_reported_with_what_to_install(package):
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from isoscope.capture.model.load import load\n"
        "try: load('.')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = run(code)
    assert f"needs the package {package}" in done.stdout
    assert "pip install 'isoscope[hf]'" in done.stdout


def test_importing_the_loader_is_cheap():
    code = (
        "import isoscope.capture.model.load, sys\n"
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    assert run(code).stdout.strip() == "set()"


def test_what_is_installed_is_no_error():
    assert need(("torch", "json")) is None


@pytest.mark.parametrize(
    ("options", "slug"),
    [({"dtype": "float8"}, "dtype-unknown"), ({"device": "gpu"}, "device-unknown")],
)
def test_settings_are_checked_before_the_model_is_looked_for(options, slug):
    with pytest.raises(IsoscopeError) as e:
        load("/no/such/folder", **options)
    assert e.value.slug == slug


def hidden(loaded, text):
    batch = loaded.tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        return loaded.body(**batch).last_hidden_state[0]


@pytest.mark.real
def test_minilm_is_read(minilm):
    loaded = load(minilm)
    assert loaded.identity["parameters"] == 22_713_216
    assert hidden(loaded, CORPUS).shape == (15, 384)
    alike, unlike = (
        torch.cosine_similarity(hidden(loaded, a).mean(0), hidden(loaded, b).mean(0), dim=0)
        for a, b in (("a cat sleeps", "a kitten naps"), ("a cat sleeps", "interest rates rose"))
    )
    assert alike > 0.6 > 0.2 > unlike


@pytest.mark.slow
@pytest.mark.real
def test_smollm2_is_read_from_its_gguf_file_and_knows_english(smollm_opened, smollm_said):
    loaded = smollm_opened.loaded
    assert smollm_said == []
    assert loaded.name == "SmolLM2-135M-Instruct.Q4_1"
    assert loaded.identity["parameters"] == 134_515_008
    assert type(loaded.body).__name__ == "LlamaModel"
    ids = loaded.tokenizer(CORPUS, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        loss = loaded.model(ids, labels=ids).loss
    assert loss < 2.5  # a uniform guess is 10.8


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "architecture", "width"),
    [
        ("rxnfp_bert_pretrained_fp16", "BertForMaskedLM", 256),
        ("rxnfp_bert_ft_fp16", "BertModel", 256),
        ("rxnmapper_albert", "AlbertForMaskedLM", 256),
    ],
)
def test_models_of_reactions_are_read(real_models, name, architecture, width):
    loaded = load(real_models / name)
    assert loaded.identity["architecture"] == architecture
    assert {p.dtype for p in loaded.model.parameters()} == {torch.float32}
    assert hidden(loaded, "CC(=O)Cl.CO>>CC(=O)OC").shape == (19 + 2, width)


@pytest.mark.real
def test_whisper_is_read_with_what_it_needs_to_hear(real_models):
    loaded = load(real_models / "whisper_tiny_en_fp16")
    assert loaded.takes == "audio"
    tone = torch.sin(torch.arange(16000) * 0.1).numpy()
    features = loaded.processor(tone, sampling_rate=16000, return_tensors="pt")
    start = torch.tensor([[loaded.model.config.decoder_start_token_id]])
    with torch.no_grad():
        heard = loaded.body(features["input_features"], decoder_input_ids=start)
    assert heard.encoder_last_hidden_state.shape == (1, 1500, 384)
    assert heard.last_hidden_state.shape == (1, 1, 384)
    assert loaded.tokenizer.decode(loaded.tokenizer("hello")["input_ids"][-2:-1]) == "hello"
