"""How hard hypothesis tries: 12 examples in `make test`, 1,000 in `make laws`; small models."""

import gc
import importlib
import json
import shutil
import sys
from contextlib import suppress

import pytest
import threadpoolctl
from hypothesis import HealthCheck, settings

pytest_plugins = ["forked_session"]

settings.register_profile(
    "default",
    max_examples=12,
    deadline=None,  # two workers share two cores, so a slow example proves nothing
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("laws", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile("default")


def pytest_configure():
    """Look for libraries of linear algebra again only where a module was imported since.

    Every `threadpool_limits` looks through all shared libraries: here hundreds, for 4 ms.
    """
    find, found = threadpoolctl.ThreadpoolController, {}

    def controller():
        if found.get("modules") != len(sys.modules):
            found.update(modules=len(sys.modules), controller=find())
        return found["controller"]

    threadpoolctl.ThreadpoolController = controller
    _remember_frozen()


def _remember_frozen():
    """Count frozen objects again only where some were frozen or released since.

    Every run of a model asks whether there are any: here two million, for 40 ms.
    """
    count, freeze, unfreeze, known = gc.get_freeze_count, gc.freeze, gc.unfreeze, []

    def counted():
        if not known:
            known.append(count())
        return known[0]

    def forgetting(change):
        def changed():
            known.clear()
            change()

        return changed

    gc.get_freeze_count = counted
    gc.freeze, gc.unfreeze = forgetting(freeze), forgetting(unfreeze)


# What most tests load besides what their files import; forks then have it.
WIDELY_USED = (
    "altair",
    "isoscope.lab.sweep.worker",
    "isoscope.study.survey",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.trainer",
)


def pytest_collection_finish(session):
    """Take what is loaded by now, torch and all, out of every later garbage collection."""
    if session.config.option.forks and len(session.items) > 1000:
        for name in WIDELY_USED:
            with suppress(ImportError):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()


TEXT = (
    "the river carries the boats and the boats carry the people of the town",
    "a small fire in the hills was seen from the road before the rain began",
    "nobody knew the number of the house where the old captain kept his maps",
    "in spring the market opens early and the bread is gone before the bells ring",
    "she wrote three letters to the office and never had a word of answer",
    "the engine stopped twice on the bridge and the driver walked the rest of the way",
)


@pytest.fixture(scope="session")
def texts():
    """Return forty different documents of plain words."""
    words = " ".join(TEXT).split()
    return [
        " ".join(
            words[(7 * number + 3 * place) % len(words)] for place in range(9 + number % 14)
        )
        for number in range(40)
    ]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Return the folder of a small random BERT with a real tokenizer of its own words."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("tiny")
    words = sorted(set(" ".join(TEXT).split()))
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*special, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=64,
    )
    model = BertModel(config)
    for name, parameter in model.named_parameters():
        if "LayerNorm" in name:  # as trained ones have it; else a direction has no variance
            torch.nn.init.normal_(parameter, 1.0 if name.endswith("weight") else 0.0, 0.3)
    model.save_pretrained(folder)
    return folder


def trained_looking(model):
    """Give norms gains and biases as training does; fresh ones are all ones and zeros."""
    import torch

    for name, parameter in model.named_parameters():
        if "norm" in name.lower() or "ln_" in name:
            middle = 1.0 if name.endswith("weight") else 0.0
            torch.nn.init.normal_(parameter, middle, 0.3)
    return model


@pytest.fixture(scope="session")
def speaker(tiny, tmp_path_factory):
    """Return the folder of a small random GPT-2 with its head, tied."""
    return _causal(tiny, tmp_path_factory.mktemp("speaker"), tied=True)


@pytest.fixture(scope="session")
def untied(tiny, tmp_path_factory):
    """Return the folder of a small random GPT-2 with a head of its own."""
    return _causal(tiny, tmp_path_factory.mktemp("untied"), tied=False)


@pytest.fixture(scope="session")
def checkpoints(untied, texts, tmp_path_factory):
    """Return a folder of twelve checkpoints: a small GPT-2 trained with plain PyTorch."""
    import torch
    from transformers import AutoTokenizer, GPT2LMHeadModel

    folder = tmp_path_factory.mktemp("series") / "checkpoints"
    tokenizer = AutoTokenizer.from_pretrained(untied)
    model = GPT2LMHeadModel.from_pretrained(untied).train()
    documents = [torch.tensor([tokenizer(text)["input_ids"][:40]]) for text in texts]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    torch.manual_seed(0)
    for step in range(12):
        model.save_pretrained(folder / f"step_{step * 10}")
        tokenizer.save_pretrained(folder / f"step_{step * 10}")
        for ids in documents[step % 4 :: 4]:
            optimizer.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
    return folder


def _causal(tiny, folder, *, tied):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = json.loads((tiny / "tokenizer.json").read_text())
    settings = json.loads((tiny / "tokenizer_config.json").read_text())
    for name in ("cls_token", "sep_token"):
        settings.pop(name)
    (folder / "tokenizer.json").write_text(json.dumps({**tokenizer, "post_processor": None}))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=len(tokenizer["model"]["vocab"]),
        n_embd=24,
        n_layer=3,
        n_head=2,
        n_positions=64,
        bos_token_id=1,
        eos_token_id=1,
        tie_word_embeddings=tied,
    )
    model = trained_looking(GPT2LMHeadModel(config))
    torch.nn.init.normal_(model.transformer.wte.weight, 0.02, 0.2)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def masker(tiny, tmp_path_factory):
    """Return the folder of a small random BERT that predicts masked tokens."""
    import torch
    from transformers import BertConfig, BertForMaskedLM

    folder = tmp_path_factory.mktemp("masker") / "model"
    shutil.copytree(tiny, folder)
    torch.manual_seed(2)
    config = BertConfig.from_pretrained(tiny)
    config.architectures = ["BertForMaskedLM"]
    trained_looking(BertForMaskedLM(config)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def filler(masker, tmp_path_factory):
    """Return the folder of a small BERT whose tokenizer has a token for masked ones."""
    folder = tmp_path_factory.mktemp("filler") / "model"
    shutil.copytree(masker, folder)
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mask_token": "[UNK]"}))
    return folder


@pytest.fixture(scope="session")
def gemma(tiny, tmp_path_factory):
    """Return the folder of a small random Gemma, whose gain is 1 + w and which has no bias."""
    import torch
    from transformers import GemmaConfig, GemmaForCausalLM

    folder = tmp_path_factory.mktemp("gemma") / "model"
    shutil.copytree(tiny, folder)
    torch.manual_seed(3)
    config = GemmaConfig(
        vocab_size=80, hidden_size=24, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=12, intermediate_size=48, pad_token_id=0,
        bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    model = GemmaForCausalLM(config)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, 0.0, 0.3)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def normless(tmp_path_factory):
    """Return the folder of a small convolutional network: no norm after its last block."""
    import torch
    from transformers import ResNetConfig, ResNetModel

    folder = tmp_path_factory.mktemp("normless")
    torch.manual_seed(4)
    config = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"
    )
    ResNetModel(config).save_pretrained(folder)
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
    return {(each.site, each.variant, each.measure, each.group): each for each in readings}


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


@pytest.fixture(scope="session")
def tiny_run(tiny, texts, tmp_path_factory):
    """Return the run folder of the small BERT over forty texts."""
    from isoscope.api import survey

    folder = tmp_path_factory.mktemp("runs") / "tiny"
    survey(tiny, texts, output=folder, tokens=None)
    return folder
