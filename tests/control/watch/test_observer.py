"""Observers: readings are those of `iso.measure` of the same rows at the same site."""

import numpy as np
import pytest
import torch
from torch import nn
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
)

import isoscope as iso
from isoscope.accumulate import Moments
from isoscope.control import Watch
from isoscope.control.processes import World
from isoscope.control.watch.observer import dead_dimensions, probe_batches
from isoscope.errors import ConfigError, UnknownNameError

WATCHED = (
    "mean-cosine", "effective-rank", "isoscore", "isoscore-debiased", "top-share", "alpha",
    "mean-share", "norm-spread", "uniformity", "self-similarity",
)  # fmt: skip
OF_TOKENS = {"self-similarity"}
SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2}


def bert(vocabulary):
    return BertModel(BertConfig(vocab_size=vocabulary, intermediate_size=48, **SIZES))


def gpt2(vocabulary):
    return GPT2Model(GPT2Config(vocab_size=vocabulary, n_embd=24, n_layer=3, n_head=2))


def llama(vocabulary):
    config = LlamaConfig(
        vocab_size=vocabulary, intermediate_size=48, num_key_value_heads=2, **SIZES
    )
    return LlamaModel(config)


KINDS = {"bert": (bert, "encoder.layer"), "gpt2": (gpt2, "h"), "llama": (llama, "layers")}


@pytest.fixture
def tokenizer(tiny):
    return AutoTokenizer.from_pretrained(tiny)


def build(kind, tokenizer):
    """Return a small random model in training mode, and the modules of its blocks."""
    make, blocks = KINDS[kind]
    torch.manual_seed(0)
    model = make(len(tokenizer)).train()
    for name, parameter in model.named_parameters():  # norms that do something
        if "norm" in name.lower() or "ln_" in name:
            nn.init.normal_(parameter, 1.0 if name.endswith("weight") else 0.0, 0.3)
    return model, list(model.get_submodule(blocks))


def block_rows(model, blocks, texts, tokenizer, dtype=torch.float32):
    """Return the rows of each block and the document of each row, from one text at a time."""
    heard = [[] for _ in blocks]
    handles = [
        block.register_forward_hook(
            lambda _module, _given, out, kept=kept: kept.append(
                (out[0] if isinstance(out, tuple) else out)[0].float().numpy()
            )
        )
        for block, kept in zip(blocks, heard, strict=True)
    ]
    lengths = []
    model.eval()
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            lengths.append(ids.shape[1])
            model(input_ids=ids, attention_mask=torch.ones_like(ids))
    model.train()
    for handle in handles:
        handle.remove()
    documents = np.repeat([f"memory:{number}" for number in range(len(texts))], lengths)
    return [np.concatenate(kept) for kept in heard], documents


def readings(watch, ending=""):
    """Return the last value of each series by measure and site."""
    split = {tuple(name.split("/")[1:]): series for name, series in watch.history.items()}
    return {
        (measure, site.removesuffix(".batch")): series[-1][1]
        for (measure, site), series in split.items()
        if site.endswith(".batch") == bool(ending)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_held_out_readings_equal_measure_of_the_rows_of_the_block(kind, tokenizer, texts):
    model, blocks = build(kind, tokenizer)
    watch = Watch(texts, measures=WATCHED, tokenizer=tokenizer, tokens=10**6, batch=False)
    watch.read(model, 0)
    found = readings(watch)
    rows, documents = block_rows(model, blocks, texts, tokenizer)
    # Texts without ids are dealt to halves by their content, stored rows by their ids.
    names = [name for name in WATCHED if name not in (*OF_TOKENS, "isoscore-debiased")]
    for layer, each in enumerate(rows):
        known = iso.measure(each, document=list(documents), measures=names)
        expected = {r.measure: r.value for r in known if r.measure in names}
        seen = {name: found[name, f"resid.{layer}"] for name in expected}
        # Padded batches sum float32 in another order.
        assert seen == pytest.approx(expected, rel=1e-4, abs=1e-6)
        assert len(expected) == len(names)


@pytest.mark.parametrize("kind", KINDS)
def test_readings_equal_a_survey_of_the_same_texts(kind, tokenizer, texts, tmp_path):
    model, _ = build(kind, tokenizer)
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    watch = Watch(
        texts, measures=WATCHED, sites=("resid", "norm"), tokenizer=tokenizer, length=32,
        tokens=10**6, batch=False,
    )  # fmt: skip
    watch.read(model, 0)
    found = readings(watch)
    known = iso.survey(
        tmp_path, texts, sites="resid,norm", measures=WATCHED, tokens=None, length=32
    )
    expected = {
        (r.measure, r.site): r.value
        for r in known
        if r.variant == "all" and not r.group and r.measure in WATCHED
    }
    assert len(expected) > 4 * len(WATCHED)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_a_pre_norm_model_is_read_before_its_last_norm(tokenizer, texts):
    model, _ = build("gpt2", tokenizer)
    watch = Watch(texts, measures=["norm-spread"], tokenizer=tokenizer, batch=False)
    watch.read(model, 0)
    last = readings(watch)["norm-spread", "resid.2"]
    with torch.no_grad():
        model.ln_f.weight.mul_(torch.rand(24))
    watch.read(model, 1)
    assert readings(watch)["norm-spread", "resid.2"] == last


def test_autocast_does_not_lower_the_precision_of_sums(tokenizer, texts):
    model, blocks = build("bert", tokenizer)
    model.eval()
    inputs = tokenizer(texts[:8], padding=True, return_tensors="pt")
    watch, kept = Watch(every=1), []
    handle = blocks[-1].register_forward_hook(
        lambda _module, _given, out: kept.append(out[0] if isinstance(out, tuple) else out)
    )
    watch.begin(model, 1)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        model(**inputs)
    watch.end(model, 1)
    handle.remove()
    rows = kept[-1][inputs["attention_mask"].bool()].float().numpy()
    for name in ("mean-cosine", "effective-rank"):
        known = iso.measure(rows, measures=[name])[0].value
        assert readings(watch, "batch")[name, "resid.2"] == pytest.approx(known, rel=1e-5)


def test_measures_of_tokens_are_read_from_the_batch(tokenizer, texts):
    model, _ = build("bert", tokenizer)
    watch = Watch(every=1, measures=["self-similarity"])
    watch.begin(model, 1)
    model(**tokenizer(texts, padding=True, return_tensors="pt"))
    watch.end(model, 1)
    assert ("self-similarity", "resid.1") in readings(watch, "batch")


def pooled_rows(model, texts, tokenizer):
    """Return the mean of the last states of each text, one text at a time."""
    found = []
    model.eval()
    with torch.no_grad():
        for text in texts:
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            found.append(model(input_ids=ids).last_hidden_state[0].mean(0).numpy())
    model.train()
    return np.stack(found)


POOLED = ("mean-cosine", "isoscore", "isoscore-debiased")


def test_pooled_vectors_are_read_with_a_mode_that_is_passed(tokenizer, texts):
    model, _ = build("bert", tokenizer)
    watch = Watch(
        texts, every=1, sites=["pooled"], pooling="mean", measures=POOLED, tokenizer=tokenizer,
        tokens=10**6,
    )  # fmt: skip
    watch.begin(model, 1)
    model(**tokenizer(texts[:6], padding=True, return_tensors="pt"))
    watch.end(model, 1)
    rows = pooled_rows(model, texts, tokenizer)
    expected = {r.measure: r.value for r in iso.measure(rows, measures=POOLED)}
    found = {name: readings(watch)[name, "pooled"] for name in POOLED}
    assert found == pytest.approx(expected, rel=1e-3)
    assert readings(watch, "batch").keys() == {(name, "pooled") for name in POOLED}


@pytest.mark.parametrize("whole", [True, False])
def test_pooled_is_what_a_sentence_transformer_returns(minilm, texts, whole):
    from sentence_transformers import SentenceTransformer
    from transformers import AutoModel

    sentences = SentenceTransformer(str(minilm), device="cpu")
    expected = {
        r.measure: r.value
        for r in iso.measure(sentences.encode(texts, batch_size=1), measures=POOLED)
    }
    model = sentences if whole else AutoModel.from_pretrained(minilm)
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    watch = Watch(
        texts, every=1, sites=["pooled"], measures=POOLED, tokenizer=tokenizer, tokens=10**6,
        length=128,
    )  # fmt: skip
    watch.begin(model, 1)
    inputs = dict(tokenizer(texts[:6], padding=True, return_tensors="pt"))
    output = model(inputs) if whole else model(**inputs)
    watch.end(model, 1)
    found = {name: readings(watch)[name, "pooled"] for name in POOLED}
    assert found == pytest.approx(expected, rel=1e-3)
    if whole:
        rows = output["sentence_embedding"].detach().numpy()
        batch = readings(watch, "batch")["mean-cosine", "pooled"]
        assert batch == pytest.approx(iso.measure(rows, measures=POOLED)[0].value, rel=1e-4)


def test_pooled_needs_a_model_that_pools(tokenizer):
    model, _ = build("gpt2", tokenizer)
    with pytest.raises(ConfigError, match="says how its tokens are pooled, got GPT2Model"):
        Watch(sites=["resid", "pooled"]).place(model)


@pytest.mark.parametrize(
    ("measures", "modules", "problem"),
    [
        (["mean-cosine-centred"], None, "cannot watch mean-cosine-centred: it needs a second"),
        (["self-similarity"], ["0"], "cannot watch self-similarity: it needs tokens"),
    ],
)
def test_what_a_training_step_cannot_give_is_refused_with_a_reason(measures, modules, problem):
    with pytest.raises(ConfigError, match=problem) as caught:
        Watch(measures=measures, modules=modules)
    assert caught.value.slug == "watch-settings"


def test_a_name_that_is_no_measure_gets_the_nearest():
    with pytest.raises(UnknownNameError, match="no watched measure is called 'dead'"):
        Watch(measures=["dead"])
    with pytest.raises(UnknownNameError) as caught:
        Watch(measures=["dead-dimension"])
    assert "dead-dimensions" in caught.value.hint


def test_matrices_are_refused_and_excluded_of_families(tokenizer):
    model, _ = build("bert", tokenizer)
    with pytest.raises(ConfigError, match=r"a batch runs through, got \['embed\.weight'\]"):
        Watch(sites=["embed.weight"]).place(model)
    watch = Watch(sites=["embed"])
    watch.place(model)
    assert watch.observer.place(model).names == ("embed",)


def watched(rows, **options):
    """Return what is read of rows, (n, d) or (documents, positions, d), by measure."""
    net = nn.Sequential(nn.Identity())
    watch = Watch(every=1, modules=["0"], **options)
    watch.begin(net, 1)
    net(torch.from_numpy(rows))
    watch.end(net, 1)
    return {measure: value for (measure, _), value in readings(watch, "batch").items()}


def cloud(n=200, d=24):
    rng = np.random.default_rng(3)
    return (rng.normal(size=(n, d)) * np.arange(1, d + 1) ** -0.7 + 0.2).astype(np.float32)


def test_rows_of_a_module_without_positions_are_independent():
    rows, names = cloud(), [*(name for name in WATCHED if name not in OF_TOKENS), "twonn"]
    known = {r.measure: r.value for r in iso.measure(rows, measures=names)}
    found = watched(rows, measures=names)
    assert found == pytest.approx({name: known[name] for name in names}, rel=1e-4)


def test_a_white_cloud_of_few_rows_reads_one_debiased_and_less_plain():
    rng, names = np.random.default_rng(0), ("isoscore", "isoscore-debiased")
    white = [rng.normal(size=(100, 64)).astype(np.float32) for _ in range(20)]
    found = [list(watched(rows, measures=names).values()) for rows in white]
    plain, debiased = np.mean(found, axis=0)
    assert plain < 0.65 and debiased == pytest.approx(1.0, abs=0.1)


def test_a_map_of_a_convolution_has_a_row_for_each_place():
    rows = cloud().reshape(10, 20, 24)
    maps = np.ascontiguousarray(rows.transpose(0, 2, 1).reshape(10, 24, 4, 5))
    assert watched(maps) == pytest.approx(watched(rows), rel=1e-4)


@pytest.mark.parametrize("constant", [0.25, 30.0])
def test_dimensions_in_which_rows_hardly_differ_are_dead(constant):
    rows = cloud(400)
    rows[:, :6] = constant  # float32 sums of its squares leave more than a dead variance
    assert watched(rows)["dead-dimensions"] == 6 / 24


def test_a_dimension_alive_in_rows_that_no_sample_has_is_not_dead():
    rows = cloud(400)
    sample = rows.copy()
    sample[:, 0] = 0
    assert dead_dimensions(np.cov(rows.T), sample) == 0


@pytest.mark.parametrize(
    ("rows", "defined"),
    [
        (np.ones((1, 5), dtype=np.float32), set()),
        (np.ones((8, 5), dtype=np.float32), {"mean-cosine", "dead-dimensions"}),
    ],
)
def test_what_is_undefined_is_excluded_and_never_a_number(rows, defined):
    assert set(watched(rows)) == defined


def test_gradient_checkpointing_is_summed_once(tokenizer, texts):
    from isoscope.accumulate.survey import Survey

    model, _ = build("bert", tokenizer)
    model.gradient_checkpointing_enable()
    watch, survey = Watch(), Survey()
    inputs = tokenizer(texts, padding=True, return_tensors="pt")
    with watch.observer.listening(model, survey, "batch"):
        model(**inputs).last_hidden_state.sum().backward()
    counts = {here[Moments].count for here in survey.held.values()}
    assert len(survey.held) == 3 and counts == {int(inputs["attention_mask"].sum())}


class Plain(nn.Module):
    """A body for the feed of a tokenizer: nothing of it is run but for trials of padding."""

    config = BertConfig()

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, input_ids, attention_mask):
        return (input_ids[..., None] * self.weight * attention_mask[..., None],)


def batches_of(probes, tokenizer, *, length=16, tokens=10**4, world=None):
    return probe_batches(
        probes, Plain(), tokenizer, length=length, tokens=tokens, world=world or World()
    )


def test_texts_are_padded_batches_up_to_a_budget(tokenizer, texts):
    batches = batches_of(texts, tokenizer, tokens=150)
    masks = [batch.inputs["attention_mask"] for batch in batches]
    assert 150 <= sum(int(mask.sum()) for mask in masks) < 150 + 16
    assert max(mask.shape[1] for mask in masks) <= 16
    documents = [name for batch in batches for name in batch.rows.documents]
    assert set(documents) == {f"memory:{number}" for number in range(len(documents))}
    first = tokenizer(texts[0], truncation=True, max_length=16)["input_ids"]
    rows = [row[: len(first)].tolist() for b in batches for row in b.inputs["input_ids"]]
    assert first in rows


def test_each_process_has_its_share_of_the_texts(tokenizer, texts):
    shares = [batches_of(texts[:10], tokenizer, world=World(rank, 3)) for rank in range(3)]
    documents = [[name for b in share for name in b.rows.documents] for share in shares]
    assert [len(each) for each in documents] == [4, 3, 3]
    assert sorted(name for each in documents for name in each) == [
        f"memory:{number}" for number in range(10)
    ]


def test_batches_are_taken_as_they_are_under_a_name_of_their_own():
    given = [{"pixel_values": torch.zeros(2, 3)} for _ in range(3)]
    shares = [batches_of(given, None, world=World(rank, 2)) for rank in (0, 1)]
    assert [[each.inputs for each in share] for share in shares] == [given[::2], given[1::2]]
    names = [each.name for share in shares for each in share]
    assert names == ["held-out:0", "held-out:2", "held-out:1"]


@pytest.mark.parametrize(
    ("probes", "known"),
    [(["a text"], False), ([5, 6], True), (["river", ""], True), (["", " "], True)],
)
def test_what_cannot_be_watched_is_refused(tokenizer, probes, known):
    with pytest.raises(ConfigError) as caught:
        batches_of(probes, tokenizer if known else None)
    assert caught.value.slug == "watch-probes"
