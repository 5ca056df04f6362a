"""Encoder-decoders read the first half of a document and go on with the second."""

import numpy as np
import pytest

from isoscope.capture.feed.reader import TokenSequence
from isoscope.capture.feed.text import PairFeed, halves, start_token


def fed(zoo, kind="t5", length=512, **settings):
    tokenizer = zoo.t5_like() if kind == "t5" else zoo.bert_like()
    loaded = zoo.pair_model(kind, tokenizer, **settings)
    return PairFeed(loaded, length=length, prompt=None), loaded


def ids(zoo, text):
    return zoo.reader()(text)["input_ids"]


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_company_changes_nothing(zoo, kind):
    feed, loaded = fed(zoo, kind)
    assert feed.mixes_lengths
    documents = [zoo.Document(str(n), zoo.sentence(n, seed=n)) for n in (4, 19, 8)]
    documents.append(zoo.Document("t", zoo.sentence(5), target=zoo.sentence(13)))
    sides = {"enc": loaded.body.encoder, "dec": loaded.body.decoder}
    batch = zoo.same_alone_and_beside(feed, loaded, documents, sides)
    around = 1 if kind == "t5" else 2
    encoder, decoder = batch.marks("enc", 10 + around), batch.marks("dec", 14)
    assert encoder.real.sum(dim=1).tolist() == [n + around for n in (2, 10, 4, 5)]
    assert decoder.real.sum(dim=1).tolist() == [3, 10, 5, 14]
    assert encoder.special.sum(dim=1).tolist() == [around] * 4
    assert decoder.special[:, 0].all() and not decoder.special[:, 1:].any()


def test_bytes_are_halved_too(zoo):
    loaded = zoo.byt5_model()
    feed = PairFeed(loaded, length=512, prompt=None)
    documents = [zoo.Document("a", "the cat"), zoo.Document("b", "né" * 9)]
    sides = {"enc": loaded.body.encoder, "dec": loaded.body.decoder}
    batch = zoo.same_alone_and_beside(feed, loaded, documents, sides)
    assert batch.marks("enc", 15).real.sum(dim=1).tolist() == [5, 15]
    assert batch.marks("dec", 14).real.sum(dim=1).tolist() == [4, 14]


def test_the_second_half_goes_to_the_decoder(zoo):
    feed, _ = fed(zoo)
    ready = feed.prepare(zoo.Document("a", "the cat sat on a"))
    words = ids(zoo, "the cat sat on a")
    assert ready.inputs["input_ids"].tolist() == [*words[:3], 2]
    assert ready.inputs["decoder_input_ids"].tolist() == [0, *words[3:]]
    assert (ready.length, ready.cost, ready.truncated) == (4, 7, False)


def test_a_target_goes_to_the_decoder(zoo):
    feed, _ = fed(zoo)
    ready = feed.prepare(zoo.Document("a", "the cat", target="sat on"))
    assert ready.inputs["input_ids"].tolist() == [*ids(zoo, "the cat"), 2]
    assert ready.inputs["decoder_input_ids"].tolist() == [0, *ids(zoo, "sat on")]


def test_a_blank_target_is_none(zoo):
    feed, _ = fed(zoo)
    plain, blank = (feed.prepare(zoo.Document("a", "the cat", target=t)) for t in (None, " "))
    assert (
        blank.inputs["decoder_input_ids"].tolist() == plain.inputs["decoder_input_ids"].tolist()
    )


@pytest.mark.parametrize(
    ("words", "target", "truncated"),
    [(9, None, True), (7, None, False), (3, 9, True), (3, 7, False)],
)
def test_both_sides_keep_within_the_length(zoo, words, target, truncated):
    feed, _ = fed(zoo, length=8)
    given = None if target is None else zoo.sentence(target)
    ready = feed.prepare(zoo.Document("a", zoo.sentence(words), target=given))
    assert ready.truncated is truncated
    assert max(len(ready.inputs[name]) for name in ready.inputs) <= 8


@pytest.mark.parametrize("content", ["", "cat", np.array([2, 2, 2])])
def test_nothing_for_either_side_is_nothing_to_measure(zoo, content):
    feed, _ = fed(zoo)
    assert feed.prepare(zoo.Document("a", content)) is None


def test_token_files_are_halved(zoo):
    loaded = zoo.pair_model("bart")
    feed = PairFeed(loaded, length=512, prompt=None)
    ready = feed.prepare(zoo.Document("a", np.array([1, 5, 6, 7, 8, 2])))
    assert ready.inputs["input_ids"].tolist() == [1, 5, 6, 2]
    assert ready.inputs["decoder_input_ids"].tolist() == [2, 7, 8]
    assert ready.special["enc"].tolist() == [True, False, False, True]


def test_the_one_in_the_middle_is_the_encoders():
    tokens = TokenSequence(np.arange(5), np.zeros(5, dtype=bool), None, False)
    first, second = halves(tokens)
    assert (first.ids.tolist(), second.tolist()) == ([0, 1, 2], [3, 4])


@pytest.mark.parametrize(
    ("settings", "start"),
    [
        ({"decoder_start_token_id": 7}, 7),
        ({"decoder_start_token_id": None, "bos_token_id": 5}, 5),
        ({"decoder_start_token_id": None, "bos_token_id": None, "eos_token_id": [4, 3]}, 4),
    ],
)
def test_the_first_token_is_the_one_the_model_starts_with(zoo, settings, start):
    body = zoo.built("bart", **zoo.BART)
    for name, value in settings.items():
        setattr(body.config, name, value)
    assert start_token(zoo.Loaded(object(), body)) == start


def test_a_model_that_names_no_token_starts_with_the_first():
    class Bare:
        model = body = object()

    assert start_token(Bare()) == 0


def test_the_first_token_is_special_whatever_it_is(zoo):
    feed, _ = fed(zoo, decoder_start_token_id=7)
    ready = feed.prepare(zoo.Document("a", "the cat sat on"))
    assert ready.inputs["decoder_input_ids"][0] == 7
    assert ready.special["dec"].tolist() == [True, False, False]
