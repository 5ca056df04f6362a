"""Tokens of texts and of token files, cut at the limit, special ones found."""

import numpy as np
import pytest
from transformers import ByT5Tokenizer

from isoscope.capture.feed.reader import TokenReader, vocabulary
from isoscope.errors import ConfigError, SourceError


def made(zoo, *, length=512, prompt=None, tokenizer=None, pooling=None, **settings):
    loaded = zoo.text_model("bert", tokenizer, **settings)
    loaded = zoo.Loaded(loaded.body, loaded.body, "text", loaded.tokenizer, None, pooling)
    return TokenReader(loaded, length=length, prompt=prompt)


def test_special_tokens_stand_around_a_text(zoo):
    tokens = made(zoo).read(zoo.Document("a", "the cat sat"))
    assert tokens.special.tolist() == [True, False, False, False, True]
    assert tokens.types.tolist() == [0] * 5
    assert tokens.ends() == (1, 4)
    assert not tokens.truncated


def test_a_special_token_written_in_the_text_is_special(zoo):
    tokens = made(zoo).read(zoo.Document("a", "the </s> cat"))
    assert tokens.special.sum() == 3


def test_an_unknown_word_is_not_special(zoo):
    tokens = made(zoo).read(zoo.Document("a", "the zyzzyva"))
    assert tokens.special.sum() == 2


def test_padding_with_the_unknown_token_makes_no_word_special(zoo):
    tokenizer = zoo.reader("<s> $A </s>", cls_token="<s>", sep_token="</s>", pad_token="<unk>")
    reader = made(zoo, tokenizer=tokenizer, pad_token_id=3)
    assert reader.read(zoo.Document("a", "the zyzzyva")).special.sum() == 2


def test_a_long_text_keeps_its_beginning_and_the_tokens_around_it(zoo):
    text = zoo.sentence(40)
    whole = made(zoo).read(zoo.Document("a", text))
    cut = made(zoo, length=10).read(zoo.Document("a", text))
    assert cut.truncated and len(cut.ids) == len(cut.types) == 10
    assert cut.ids.tolist() == [*whole.ids[:9], whole.ids[-1]]
    assert cut.special.tolist() == [True, *[False] * 8, True]


@pytest.mark.parametrize("gap", [" ", " " * 400])
def test_a_book_is_not_read_to_its_end(zoo, gap):
    text = gap.join(zoo.sentence(3000).split())
    reader = made(zoo, length=10)
    calls = []
    tokenizer, reader.tokenizer = reader.tokenizer, None
    reader.tokenizer = lambda given, **options: (
        calls.append(len(given)) or tokenizer(given, **options)
    )
    cut = reader.read_text(text)
    assert max(calls) < len(text) / 4
    assert (
        cut.ids.tolist() == made(zoo, length=10).read_text(text[: len(text) // 2]).ids.tolist()
    )
    assert cut.truncated


def test_room_for_special_tokens_only_leaves_nothing_to_measure(zoo):
    assert not made(zoo, length=2).read(zoo.Document("a", "the cat")).measurable


@pytest.mark.parametrize("text", ["", "  \n\t", "\ud800"[:0]])
def test_an_empty_text_has_no_tokens(zoo, text):
    tokens = made(zoo, prompt="the cat").read(zoo.Document("a", text))
    assert len(tokens.ids) == 0 and not tokens.measurable


def test_half_a_surrogate_pair_is_read(zoo):
    assert made(zoo).read(zoo.Document("a", "the \ud800 cat")).measurable


def test_a_prompt_goes_in_front_by_its_words_or_its_name(zoo):
    pooling = zoo.Pooling(prompts={"query": "the far "}, default_prompt="query")
    asked = zoo.Document("a", "cat")
    plain = made(zoo).read(zoo.Document("a", "the far cat")).ids.tolist()
    assert made(zoo, prompt="the far ").read(asked).ids.tolist() == plain
    assert made(zoo, prompt="query", pooling=pooling).read(asked).ids.tolist() == plain
    assert made(zoo, pooling=pooling).read(asked).ids.tolist() == plain
    assert made(zoo, pooling=pooling).prompt_length() == 3
    assert made(zoo, pooling=zoo.Pooling()).prompt_length() == 0
    assert len(made(zoo, prompt="", pooling=pooling).read(asked).ids) == 3


def test_texts_are_lowered_where_the_folder_says_so(zoo):
    upper = zoo.Document("a", "THE CAT")
    lowered = made(zoo, pooling=zoo.Pooling(lower=True)).read(upper)
    assert lowered.ids.tolist() == made(zoo).read(zoo.Document("a", "the cat")).ids.tolist()


def test_token_ids_are_taken_as_they_are(zoo):
    body = zoo.built("bert", **zoo.SMALL, eos_token_id=[2, 7])
    reader = TokenReader(zoo.Loaded(body, body), length=4)
    tokens = reader.read(zoo.Document("a", np.array([5, 7, 9, 2, 11, 12], dtype=np.uint16)))
    assert tokens.ids.tolist() == [5, 7, 9, 2] and tokens.ids.dtype == np.int64
    assert tokens.special.tolist() == [False, True, False, True]
    assert tokens.truncated


def test_the_tokenizer_knows_better_than_the_config_what_is_special(zoo):
    reader = made(zoo, bos_token_id=5, eos_token_id=6)
    assert reader.read(zoo.Document("a", np.array([1, 5, 6, 2]))).ends() == (1, 3)


@pytest.mark.parametrize("wrong", [-1, 64])
def test_token_ids_of_another_vocabulary_are_refused(zoo, wrong):
    with pytest.raises(SourceError, match=f"from 0 below 64, got {wrong} in 'a'") as caught:
        made(zoo).read(zoo.Document("a", np.array([5, wrong])))
    assert caught.value.slug == "token-range"


def test_a_prompt_cannot_go_in_front_of_token_ids(zoo):
    ids = zoo.Document("a", np.array([5, 6]))
    with pytest.raises(ConfigError, match="cannot put a prompt in front of token ids"):
        made(zoo, prompt="far ").read(ids)
    own = zoo.Pooling(prompts={"query": "far "}, default_prompt="query")
    assert made(zoo, pooling=own).read(ids).measurable


@pytest.mark.parametrize("content", [np.zeros(3), np.zeros((2, 2), dtype=int), None])
def test_sound_and_images_are_no_text(zoo, content):
    with pytest.raises(ConfigError, match="expected text or token ids, got") as caught:
        made(zoo).read(zoo.Document("a", content))
    assert caught.value.slug == "corpus-kind"


def test_without_a_tokenizer_token_files_are_offered(zoo):
    body = zoo.built("gpt2", n_embd=32, n_layer=1, n_head=2, vocab_size=64)
    reader = TokenReader(zoo.Loaded(body, body), length=16)
    with pytest.raises(ConfigError, match=r"\.npy files") as caught:
        reader.read(zoo.Document("a", "the cat"))
    assert caught.value.slug == "tokenizer-missing"
    assert reader.read(zoo.Document("a", np.array([5, 6]))).measurable
    assert reader.prompt_length() == 0


def test_bytes_are_tokens(zoo):
    tokens = made(zoo, tokenizer=ByT5Tokenizer(), vocab_size=384).read_text("né")
    assert tokens.ids.tolist() == [113, 198, 172, 1]
    assert tokens.special.tolist() == [False, False, False, True]


@pytest.mark.parametrize(("given", "used"), [(0, 0), (5, 5), (-1, 0), (64, 0), (None, 0)])
def test_padding_is_always_a_known_token(zoo, given, used):
    reader = made(zoo, tokenizer=zoo.reader())
    reader.config.pad_token_id = given
    assert reader.pad == used


def test_the_vocabulary_is_the_models(zoo):
    assert vocabulary(zoo.text_model("bert")) == 64
    assert vocabulary(zoo.canine_model()) is None
