"""Every family gets the feed that fits it."""

import pytest
import torch
from transformers import T5EncoderModel

from isoscope.capture.feed import feed_for
from isoscope.capture.feed.image import ImageFeed
from isoscope.capture.feed.sound import WaveFeed, WhisperFeed
from isoscope.capture.feed.text import CharacterFeed, PairFeed, TextFeed
from isoscope.errors import ConfigError

FEEDS = {
    "bert": (lambda zoo: zoo.text_model("bert"), TextFeed),
    "canine": (lambda zoo: zoo.canine_model(), CharacterFeed),
    "t5": (lambda zoo: zoo.pair_model("t5"), PairFeed),
    "wav2vec2": (lambda zoo: zoo.wave_model("wav2vec2", "group"), WaveFeed),
    "whisper": (lambda zoo: zoo.whisper_model(), WhisperFeed),
}


@pytest.mark.parametrize("kind", FEEDS)
def test_the_feed_fits_the_family(zoo, kind):
    make, expected = FEEDS[kind]
    assert type(feed_for(make(zoo))) is expected


def test_images_get_theirs(zoo):
    body = torch.nn.Linear(1, 1)
    body.config = None
    assert type(feed_for(zoo.Loaded(body, body, "image", processor=print))) is ImageFeed


def test_an_encoder_cut_out_of_a_pair_reads_alone(zoo):
    body = T5EncoderModel(zoo.pair_model("t5").body.config).eval()
    feed = feed_for(zoo.Loaded(body, body, tokenizer=zoo.t5_like()))
    assert type(feed) is TextFeed
    batch = feed.batch([feed.prepare(zoo.Document("a", "the cat"))])
    assert batch.marks("", 3).special.tolist() == [[False, False, True]]


def test_length_and_prompt_are_passed_on(zoo):
    feed = feed_for(zoo.text_model("bert"), length=8, prompt="the far ")
    ready = feed.prepare(zoo.Document("a", zoo.sentence(20)))
    assert ready.length == 8 and ready.truncated and feed.prompt_length == 3


def test_sound_takes_no_prompt(zoo):
    with pytest.raises(ConfigError, match="cannot put a prompt in front of audio"):
        feed_for(zoo.whisper_model(), prompt="far")


def test_sound_models_of_another_kind_are_refused(zoo):
    body = zoo.built(
        "audio-spectrogram-transformer",
        **{key: value for key, value in zoo.SMALL.items() if key != "vocab_size"},
    )
    with pytest.raises(ConfigError, match="cannot feed audio to ASTModel") as caught:
        feed_for(zoo.Loaded(body, body, "audio", processor=print))
    assert caught.value.slug == "audio-model"
