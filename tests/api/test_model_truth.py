"""Every reading of a survey is what `measure` gives on the activations a plain hook stores."""

import re

import numpy as np
import pytest
import torch
import transformers

from isoscope.api import survey
from isoscope.source.corpus import open_corpus
from isoscope.study.measure_choice import measure_names
from isoscope.study.model import load_model
from stored import Read, Stored, compared, known_by_id, stored

# How rxnfp and rxnmapper cut reaction SMILES: an atom, a bond, a bracket, a number.
ATOMS = re.compile(
    r"\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|\\|/|:|~|@|\?|>>?|\*|\$"
    r"|%[0-9]{2}|[0-9]"
)


# Every kind of site; `make slow` has all of them, of real models.
SOME = (
    "embed",
    "resid.1",
    "norm.in",
    "norm.mid",
    "norm.out",
    "attn.1",
    "mlp.1",
    "q.1.0",
    "k.1.1",
    "v.1.0",
)


def read_texts(tokenizer, texts):
    """Return texts as a tokenizer of transformers gives them."""
    found = []
    for number, text in enumerate(texts):
        given = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        special = given.pop("special_tokens_mask")[0].bool().numpy()
        found.append(Read(f"memory:{number}", dict(given), {"": special}))
    return found


def read_reactions(folder, reactions):
    """Return reactions cut by the expression of their authors, and looked up in vocab.txt."""
    ids = {word: n for n, word in enumerate((folder / "vocab.txt").read_text().split("\n"))}
    found = []
    for number, reaction in enumerate(reactions):
        pieces = ["[CLS]", *ATOMS.findall(reaction), "[SEP]"]
        given = torch.tensor([[ids.get(piece, ids["[UNK]"]) for piece in pieces]])
        special = np.array([piece in ("[CLS]", "[SEP]") for piece in pieces])
        inputs = {"input_ids": given, "attention_mask": torch.ones_like(given)}
        found.append(Read(f"memory:{number}", inputs, {"": special}))
    return found


def bundled(count, letters):
    """Return the beginnings of bundled documents."""
    corpus = open_corpus()
    return [corpus.document(number).content[:letters] for number in range(count)]


def loaded(kind, folder, **given):
    found = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32, **given)
    return found.eval()


def surveyed(model, corpus, *, every=False, sites=None):
    """Survey all of a corpus in batches, which what is stored has never seen."""
    corpus = known_by_id(corpus)
    return survey(model, corpus, sites=sites, tokens=None, all=every, batch=7)


def test_a_small_random_model_reads_as_its_stored_rows(tiny, texts, hooks_of):
    body = loaded("AutoModel", tiny)
    hooks = hooks_of.bert(body) | hooks_of.bert_parts(body, 1)
    hooks = {site: hooks[site] for site in SOME}
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny)
    texts = texts[:20]
    kept = stored(body, read_texts(tokenizer, texts), hooks)
    matrices = {"embed.weight": body.get_input_embeddings().weight}
    found = surveyed(tiny, texts, every=True, sites=[*hooks, *matrices])
    assert compared(found, kept, measure_names(None, all=True, text=True), matrices) > 400


@pytest.fixture(scope="module")
def minilm_kept(minilm, hooks_of):
    """Return texts, what MiniLM says of them at all its sites, and its matrix."""
    body = loaded("AutoModel", minilm)
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm)
    texts = bundled(36, 80)
    hooks = hooks_of.bert(body) | hooks_of.bert_parts(body, 2)
    kept = stored(body, read_texts(tokenizer, texts), hooks)
    return texts, kept, {"embed.weight": body.get_input_embeddings().weight}


def only(kept, wanted):
    """Return what was stored of some sites."""
    rows = {site: parts for site, parts in kept.rows.items() if wanted(site)}
    return Stored(rows, kept.ids, kept.place, kept.special, kept.tokens)


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_minilm_reads_as_its_stored_rows(minilm, minilm_kept):
    texts, kept, _ = minilm_kept
    kept = only(kept, lambda site: site in ("resid.2", "resid.5", "norm.mid"))
    found = surveyed(minilm, texts, sites=[*kept.rows, "pooled"])
    assert {r.site for r in found} == {*kept.rows, "pooled"}
    assert compared(found, kept, measure_names(None, text=True), pool="resid.5") > 200


@pytest.mark.real
@pytest.mark.slow
def test_two_passes_over_minilm_read_as_its_stored_rows(minilm, minilm_kept):
    texts, kept, _ = minilm_kept
    kept = only(kept, lambda site: site in ("resid.3", "norm.out"))
    found = surveyed(minilm, texts, every=True, sites=list(kept.rows))
    assert {"partition", "mean-cosine-centred"} <= {r.measure for r in found}
    assert compared(found, kept, measure_names(None, all=True, text=True)) > 100


@pytest.mark.real
@pytest.mark.slow
def test_every_part_of_minilm_reads_as_its_stored_rows(minilm, minilm_kept):
    texts, kept, matrices = minilm_kept
    sites = [*kept.rows, *matrices, "pooled"]
    found = surveyed(minilm, texts, every=True, sites=sites)
    names = measure_names(None, all=True, text=True)
    assert compared(found, kept, names, matrices, pool="resid.5") > 3000


@pytest.fixture(scope="module")
def smollm_kept(smollm_opened, hooks_of):
    """Return texts, and what SmolLM2 says of them at all its sites; its matrix is one."""
    found = smollm_opened.loaded
    texts = bundled(36, 100)
    hooks = hooks_of.llama(found.body) | hooks_of.llama_parts(found.body, 11)
    kept = stored(found.body, read_texts(found.tokenizer, texts), hooks)
    matrix = found.body.get_input_embeddings().weight
    return texts, kept, {"embed.weight": matrix, "unembed.weight": matrix}


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.timeout(600)
def test_smollm_reads_as_its_stored_rows(smollm_opened, smollm_kept):
    texts, kept, _ = smollm_kept
    kept = only(kept, lambda site: site in ("resid.0", "resid.15", "norm.in", "norm.out"))
    found = surveyed(smollm_opened, texts, sites=list(kept.rows))
    rows = {r.variant: r.n for r in found if r.site == "resid.15" and not r.group}
    assert rows["no-sink"] < rows["all"]
    assert compared(found, kept, measure_names(None, text=True)) > 150


@pytest.mark.real
@pytest.mark.slow
def test_every_layer_of_smollm_reads_as_its_stored_rows(smollm, smollm_kept):
    texts, kept, matrices = smollm_kept
    found = surveyed(smollm, texts, sites=[*kept.rows, *matrices])
    assert compared(found, kept, measure_names(None, text=True), matrices) > 2000


@pytest.mark.real
@pytest.mark.slow
def test_gemma_reads_as_its_stored_rows(gemma3, hooks_of):
    found = load_model(gemma3)
    body, tokenizer = found.loaded.body, found.loaded.tokenizer
    texts = bundled(36, 120)
    documents = []
    for number, text in enumerate(texts):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        given = torch.tensor([[2, *ids]])  # <bos> first, as its authors say
        inputs = {"input_ids": given, "attention_mask": torch.ones_like(given)}
        special = np.arange(len(given[0])) == 0
        documents.append(Read(f"memory:{number}", inputs, {"": special}))
    hooks = hooks_of.llama(body)
    del hooks["embed"]  # its matrix would come with it, 262,144 rows
    kept = stored(body, documents, hooks)
    readings = surveyed(found, texts, sites=list(hooks))
    rows = {r.variant: r.n for r in readings if r.site == "resid.5" and not r.group}
    assert rows["no-special"] == rows["all"] - len(texts)
    assert rows["no-sink"] < rows["all"]
    assert compared(readings, kept, measure_names(None, text=True)) > 1000


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["rxnfp_bert_pretrained_fp16", "rxnfp_bert_ft_fp16"])
def test_rxnfp_reads_as_its_stored_rows(shared_models, reactions, hooks_of, name):
    folder = shared_models / name
    body = loaded("BertModel", folder)
    kept = stored(body, read_reactions(folder, reactions), hooks_of.bert(body))
    matrices = {"embed.weight": body.get_input_embeddings().weight}
    if "pretrained" in name:  # its head for masked tokens stands beside that for sentences
        tied = loaded("BertForMaskedLM", folder)
        matrices["embed.weight"] = tied.get_input_embeddings().weight
        matrices["unembed.weight"] = tied.get_output_embeddings().weight
    found = surveyed(folder, reactions, every=True)
    assert compared(found, kept, measure_names(None, all=True, text=True), matrices) > 900


@pytest.mark.real
@pytest.mark.timeout(600)
def test_rxnmapper_reads_as_its_stored_rows(shared_models, reactions, hooks_of):
    folder = shared_models / "rxnmapper_albert"
    model = loaded("AlbertForMaskedLM", folder)
    body = model.albert
    kept = stored(body, read_reactions(folder, reactions), hooks_of.albert(body))
    matrices = {
        "embed.weight": body.get_input_embeddings().weight,
        "unembed.weight": model.get_output_embeddings().weight,
    }
    found = surveyed(folder, reactions, every=True)
    assert compared(found, kept, measure_names(None, all=True, text=True), matrices) > 900


def read_speech(model, folder, clips):
    """Return clips as the extractor and the tokenizer of transformers give them.

    A frame of the encoder is 20 ms; those of the silence after a clip do not count.
    """
    soundfile, soxr = pytest.importorskip("soundfile"), pytest.importorskip("soxr")
    extractor = transformers.WhisperFeatureExtractor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    found = []
    for path in sorted(clips.glob("*.[fw]*")):
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
        samples = soxr.resample(samples.mean(axis=1), rate, 16_000).astype(np.float32)
        features = extractor(samples, sampling_rate=16_000, return_tensors="pt").input_features
        asked = tokenizer.convert_tokens_to_ids(["<|startoftranscript|>", "<|notimestamps|>"])
        said = path.with_suffix(".txt")
        if said.exists():
            text = tokenizer(f" {said.read_text()}", add_special_tokens=False).input_ids
        else:
            text = greedy(model, features, asked)
        given = torch.tensor([[*asked, *text]])
        frames = -(-len(samples) // 320)
        special = {"enc.": np.zeros(frames, bool), "dec.": np.arange(len(given[0])) < 2}
        inputs = {"input_features": features, "decoder_input_ids": given}
        found.append(Read(path.name, inputs, special))
    return found


def greedy(model, features, asked):
    """Return the likeliest tokens one after the other, until the end or the 64th."""
    written = []
    while len(written) < 64:
        given = torch.tensor([[*asked, *written]])
        with torch.no_grad():
            scores = model(input_features=features, decoder_input_ids=given).logits[0, -1]
        if not written:  # as its config has it, the first is no blank and no end
            scores[model.config.begin_suppress_tokens] = -torch.inf
        written.append(int(scores.argmax()))
        if written[-1] == model.config.eos_token_id:
            return written[:-1]
    return written


@pytest.mark.real
@pytest.mark.timeout(900)
def test_whisper_reads_as_its_stored_rows(shared_models, speech, hooks_of):
    folder = shared_models / "whisper_tiny_en_fp16"
    model = loaded("WhisperForConditionalGeneration", folder)
    kept = stored(
        model.model, read_speech(model, folder, speech), hooks_of.whisper(model.model)
    )
    matrix = model.get_output_embeddings().weight
    matrices = {"dec.embed.weight": matrix, "unembed.weight": matrix}
    found = surveyed(folder, speech)
    assert {"enc.resid.3", "enc.norm.mid", "dec.embed", "dec.norm.out"} <= set(kept.rows)
    assert compared(found, kept, measure_names(None, text=True), matrices) > 800
