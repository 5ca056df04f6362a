"""The loss of a language model, with and without bos, against its definition."""

from math import log
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from msgspec import structs
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    PreTrainedTokenizerFast,
)

from isoscope.capture.feed import feed_for
from isoscope.capture.loss import Head, Loss, is_causal, next_token_loss
from isoscope.capture.model.load import Loaded
from isoscope.types import Document

WORDS = ["<pad>", "<bos>", *(f"w{number}" for number in range(30))]
BOS, SIZE = 1, len(WORDS)


def tokenizer(**roles):
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", **roles)


def loaded(model, *, bos="<bos>"):
    body = getattr(model, "base_model", model)
    return Loaded(model, "m", "text", tokenizer(bos_token=bos), None, {}, None, body)


def gpt2(kind=GPT2LMHeadModel, spread=0.5):
    torch.manual_seed(0)
    sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
    return kind(GPT2Config(vocab_size=SIZE, **sizes, initializer_range=spread)).eval()


def prepared(feed, texts):
    return [feed.prepare(Document(str(n), text)) for n, text in enumerate(texts)]


def sentences(count, length=20):
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS[2:], length + n % 5)) for n in range(count)]


def slow_loss(model, documents, bos):
    """Return the mean of -log p of every token but the first, one token at a time."""
    found = []
    for each in documents:
        ids = each.inputs["input_ids"].tolist()
        for place in range(1, len(ids)):
            before = torch.tensor([([BOS] if bos else []) + ids[:place]])
            with torch.no_grad():
                logits = model(input_ids=before).logits[0, -1].double()
            found.append(-float(torch.log_softmax(logits, dim=-1)[ids[place]]))
    return np.mean(found), len(found)


def test_the_loss_is_the_mean_of_log_probabilities_token_by_token():
    subject = loaded(gpt2())
    feed = feed_for(subject)
    documents = prepared(feed, sentences(8))
    found = next_token_loss(subject, feed, documents)
    for bos, value in ((True, found.with_bos), (False, found.without_bos)):
        wanted, count = slow_loss(subject.model, documents, bos)
        assert value == pytest.approx(wanted, rel=1e-6)
        assert found.tokens == count
    assert found.with_bos != pytest.approx(found.without_bos, rel=1e-3)
    assert found.chance == pytest.approx(log(SIZE))


def test_the_error_is_that_of_a_ratio_over_documents():
    subject = loaded(gpt2())
    feed = feed_for(subject)
    documents = prepared(feed, sentences(12))
    found = next_token_loss(subject, feed, documents)
    model, sums, counts = subject.model, [], []
    for each in documents:
        (one, count), (two, _) = (slow_loss(model, [each], bos) for bos in (True, False))
        sums.append((one - two) * count)
        counts.append(count)
    sums, counts = np.array(sums), np.array(counts)
    spread = sums - counts * sums.sum() / counts.sum()
    wanted = np.sqrt(len(sums) * np.var(spread, ddof=1)) / counts.sum()
    assert found.error == pytest.approx(wanted, rel=1e-4)


def test_it_stops_after_enough_tokens():
    subject = loaded(gpt2())
    feed = feed_for(subject)
    documents = prepared(feed, sentences(200))
    assert 2000 <= next_token_loss(subject, feed, documents).tokens < 2024
    assert 256 <= next_token_loss(subject, feed, documents, rows=1000).tokens < 280
    assert 500 <= next_token_loss(subject, feed, documents, rows=10_000).tokens < 524


class Planted(nn.Module):
    """Predicts the next word of "w0 w1 w2 …" with a logit that depends on the first token."""

    def __init__(self, after_bos, otherwise):
        super().__init__()
        self.head = nn.Linear(4, SIZE, bias=False)
        self.logits = {True: after_bos, False: otherwise}

    def get_output_embeddings(self):
        return self.head

    def forward(self, input_ids):
        found = torch.zeros(*input_ids.shape, SIZE)
        logit = self.logits[int(input_ids[0, 0]) == BOS]
        following = (input_ids + 1).clamp(max=SIZE - 1)
        found.scatter_(2, following[..., None], logit)
        return SimpleNamespace(logits=found)


def planted(after_bos, otherwise, *, bos=True):
    subject = loaded(Planted(after_bos, otherwise))
    if bos:  # as the files of the model would say
        from isoscope.capture.model.special_tokens import SpecialTokens, apply_special_tokens

        apply_special_tokens(subject.tokenizer, SpecialTokens(bos=True), lambda _line: None)
    feed = feed_for(subject)
    text = " ".join(WORDS[2:])
    return next_token_loss(subject, feed, prepared(feed, [text] * 20))


def known(logit):
    """Return the loss of a right guess with this logit, all others zero."""
    return log(np.exp(logit) + SIZE - 1) - logit


def test_a_survey_without_a_needed_bos_is_warned_about():
    found = planted(6.0, 1.0, bos=False)
    assert found.with_bos == pytest.approx(known(6.0), rel=1e-5)
    assert found.without_bos == pytest.approx(known(1.0), rel=1e-5)
    assert found.surveyed == found.without_bos
    assert found.line() == (
        "loss on the first 580 tokens, in nats per token: 0.07 with <bos> before each "
        "document, 2.52 without <bos> (as surveyed)"
    )
    assert found.warning().startswith(
        "special tokens look wrong: the loss is 2.44 nats lower with <bos>"
    )


def test_a_needed_bos_that_is_there_is_right():
    found = planted(6.0, 1.0)
    assert found.used
    assert found.surveyed == found.with_bos == pytest.approx(known(6.0), rel=1e-5)
    assert found.warning() == ""
    assert "before each document (as surveyed)" in found.line()


def test_a_bos_that_does_harm_is_warned_about():
    assert "nats lower without <bos>" in planted(1.0, 6.0).warning()
    assert planted(1.0, 6.0, bos=False).warning() == ""


def test_a_loss_worse_than_a_guess_is_warned_about():
    assert "uniform guess" in planted(-4.0, -4.0).warning()
    assert planted(0.5, 0.5).warning() == ""


def test_a_needed_bos_is_named_where_the_loss_without_it_is_worse_than_a_guess():
    assert "nats lower with <bos>" in planted(6.0, -4.0, bos=False).warning()
    assert "uniform guess" in planted(-4.0, -8.0, bos=False).warning()


@pytest.mark.parametrize(("gain", "error", "warns"), [
    (0.4, 0.01, False), (0.6, 0.01, True), (0.6, 0.25, False), (2.0, 0.13, True),
])  # fmt: skip
def test_only_a_clear_difference_is_a_warning(gain, error, warns):
    found = Loss(
        tokens=9, without_bos=3.0 + gain, with_bos=3.0, bos="<s>", error=error, chance=9.0
    )
    assert bool(found.warning()) is warns


def test_without_a_bos_token_there_is_one_loss():
    subject = loaded(gpt2(spread=0.02), bos=None)
    feed = feed_for(subject)
    found = next_token_loss(subject, feed, prepared(feed, sentences(4)))
    assert found.with_bos is None
    assert found.warning() == ""
    assert found.line().endswith(f"nats per token: {found.without_bos:.2f}")


def test_token_files_are_read_as_they_are():
    subject = loaded(gpt2())
    feed = feed_for(subject)
    rng = np.random.default_rng(0)
    rows = [rng.integers(2, SIZE, 20) for _ in range(8)]
    plain = [feed.prepare(Document(str(n), row)) for n, row in enumerate(rows)]
    begun = [feed.prepare(Document(str(n), np.r_[BOS, row])) for n, row in enumerate(rows)]
    one, two = (next_token_loss(subject, feed, each) for each in (plain, begun))
    assert (one.used, two.used) == (False, True)
    assert (one.with_bos, one.without_bos) == (two.with_bos, two.without_bos)


def bert(kind, **settings):
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    torch.manual_seed(0)
    config = BertConfig(vocab_size=SIZE, intermediate_size=32, **sizes, **settings)
    return kind(config).eval()


@pytest.mark.parametrize(
    ("model", "causal"),
    [
        (lambda: gpt2(), True),
        (lambda: gpt2(GPT2Model), False),
        (lambda: bert(BertForMaskedLM), False),
        (lambda: bert(BertLMHeadModel, is_decoder=True), True),
        (lambda: bert(BertLMHeadModel, is_decoder=False), False),
    ],
    ids=["gpt2", "no head", "masked", "decoder", "not a decoder"],
)
def test_causal_is_what_does_not_see_later_tokens(model, causal):
    subject = loaded(model())
    feed = feed_for(subject)
    assert is_causal(subject, feed) is causal
    if not causal:
        assert next_token_loss(subject, feed, prepared(feed, sentences(3))) is None


@pytest.mark.real
@pytest.mark.slow
def test_gemma_needs_its_bos(gemma3):
    from isoscope.capture.model.load import load
    from isoscope.source.corpus import open_corpus

    subject = load(gemma3)
    feed = feed_for(subject)
    corpus = open_corpus()
    documents = [feed.prepare(corpus.document(number)) for number in range(8)]
    found = next_token_loss(subject, feed, documents, rows=1)
    assert found.used
    assert found.with_bos + 1 < found.without_bos
    assert found.warning() == ""


def test_the_head_alone_gives_the_losses_of_the_whole_model(monkeypatch):
    monkeypatch.setattr("isoscope.capture.loss.BLOCK", 64)  # several parts of the vocabulary
    torch.manual_seed(1)
    subject = loaded(gpt2())
    subject.model.lm_head = nn.Linear(16, SIZE)  # with a bias, and not tied
    feed = feed_for(subject)
    documents = prepared(feed, sentences(6))
    assert Head.of(subject, feed) is not None
    found = next_token_loss(subject, feed, documents)
    monkeypatch.setattr(Head, "of", lambda *_: None)
    assert next_token_loss(subject, feed, documents) == Loss(
        **{
            name: pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
            for name, value in structs.asdict(found).items()
        }
    )


def test_logits_that_are_more_than_a_product_are_those_of_the_model():
    class Capped(GPT2LMHeadModel):
        def forward(self, **inputs):
            found = super().forward(**inputs)
            return SimpleNamespace(logits=torch.tanh(found.logits / 3) * 3)

    subject = loaded(gpt2(Capped, spread=2.0))
    feed = feed_for(subject)
    documents = prepared(feed, sentences(4))
    assert Head.of(subject, feed) is None
    found = next_token_loss(subject, feed, documents)
    assert found.without_bos == pytest.approx(
        slow_loss(subject.model, documents, False)[0], rel=1e-6
    )


def test_a_large_vocabulary_has_as_many_tokens_predicted(monkeypatch):
    # of Gemma, whose vocabulary has 262,144, only 512 were
    monkeypatch.setattr(
        Head, "summed_losses", lambda _head, _loaded, _feed, ways: [0.0] * len(ways)
    )
    torch.manual_seed(0)
    sizes = {"n_embd": 2, "n_layer": 1, "n_head": 1, "n_positions": 64}
    subject = loaded(GPT2LMHeadModel(GPT2Config(vocab_size=2**18, **sizes)).eval())
    feed = feed_for(subject)
    documents = prepared(feed, sentences(40, length=58))
    found = next_token_loss(subject, feed, documents, rows=50_000)
    assert 2000 <= found.tokens < 2062
    assert found.chance == pytest.approx(log(2**18))
