"""Whisper hears half a minute; only the clip counts, and the decoder has something to read."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoFeatureExtractor, AutoTokenizer, WhisperForConditionalGeneration

from isoscope.capture.feed.sound import WhisperFeed
from isoscope.errors import ConfigError

LANGUAGES = {"lang_to_id": {"<|en|>": 50, "<|de|>": 51}, "task_to_id": {"transcribe": 52}}


def clip(zoo, seconds, target=None):
    return zoo.Document(str(seconds), zoo.noise(seconds), target=target, rate=16_000)


def fed(zoo, length=512, tokenizer=None, **generation):
    loaded = zoo.whisper_model(tokenizer, **generation)
    return WhisperFeed(loaded, length=length), loaded


def test_company_changes_nothing_and_silence_is_not_counted(zoo):
    feed, loaded = fed(zoo, tokenizer=zoo.reader())
    documents = [
        clip(zoo, 0.2, "the cat"),
        clip(zoo, 0.9, "sat on a mat and ran"),
        clip(zoo, 0.5),
    ]
    sides = {"enc": loaded.body.encoder, "dec": loaded.body.decoder}
    batch = zoo.same_alone_and_beside(feed, loaded, documents, sides)
    assert batch.marks("enc", 50).real.sum(dim=1).tolist() == [10, 45, 25]
    width = batch.inputs["decoder_input_ids"].shape[1]
    marks = batch.marks("dec", width)
    assert marks.special[:, :2].all() and not marks.special[:2, 2:].any()
    assert marks.real.sum(dim=1).tolist()[:2] == [4, 8]


@pytest.mark.parametrize(("samples", "frames"), [(321, 2), (640, 2), (641, 3), (16_000, 50)])
def test_a_frame_begun_is_a_frame(zoo, samples, frames):
    feed, _ = fed(zoo)
    ready = feed.prepare(zoo.Document("a", zoo.noise(1)[:samples], rate=16_000))
    assert (ready.length, ready.cost, ready.truncated) == (frames, 50, False)


def test_less_than_two_frames_is_nothing_to_measure(zoo):
    feed, _ = fed(zoo)
    assert feed.prepare(zoo.Document("a", zoo.noise(1)[:320], rate=16_000)) is None
    assert feed.prepare(zoo.Document("a", zoo.noise(0), rate=16_000)) is None


def test_a_long_clip_is_cut_and_counted(zoo):
    feed, _ = fed(zoo)
    ready = feed.prepare(clip(zoo, 1.2))
    assert ready.truncated and ready.length == 50


def test_without_a_transcript_the_model_writes_at_most_64_tokens(zoo):
    feed, _ = fed(zoo)
    ids = feed.prepare(clip(zoo, 0.5)).inputs["decoder_input_ids"]
    assert ids[:2].tolist() == [60, 61]
    assert 2 <= len(ids) <= 2 + 64
    assert not np.isin(ids[2:], [59]).any()


def test_what_is_written_is_greedy(zoo):
    feed, loaded = fed(zoo)
    ready = feed.prepare(clip(zoo, 0.5))
    ids = torch.from_numpy(ready.inputs["decoder_input_ids"])[None]
    features = torch.from_numpy(ready.inputs["input_features"])[None]
    with torch.no_grad():
        logits = loaded.model(input_features=features, decoder_input_ids=ids).logits
    assert len(ids[0]) > 2
    assert logits[0, 1:-1].argmax(dim=-1).tolist() == ids[0, 2:].tolist()


def test_a_short_length_bounds_the_decoder(zoo):
    feed, _ = fed(zoo, length=8, tokenizer=zoo.reader())
    assert len(feed.prepare(clip(zoo, 0.5)).inputs["decoder_input_ids"]) <= 8
    ready = feed.prepare(clip(zoo, 0.5, zoo.sentence(20)))
    assert len(ready.inputs["decoder_input_ids"]) == 8 and ready.truncated


def test_a_clip_is_written_down_once(zoo, monkeypatch):
    feed, _ = fed(zoo, tokenizer=zoo.reader())
    first = feed.prepare(clip(zoo, 0.5)).inputs["decoder_input_ids"]
    monkeypatch.setattr(feed.model, "generate", None)  # not asked again
    again = feed.prepare(clip(zoo, 0.5)).inputs["decoder_input_ids"]
    assert first.tolist() == again.tolist()
    with pytest.raises(TypeError):
        feed.prepare(clip(zoo, 0.6))


def test_models_of_many_languages_are_requested_the_one_they_hear(zoo):
    feed, _ = fed(zoo, tokenizer=zoo.reader(), is_multilingual=True, **LANGUAGES)
    ids = feed.prepare(clip(zoo, 0.5, "the cat")).inputs["decoder_input_ids"]
    assert ids[0] == 60 and ids[1] in (50, 51) and ids[2:4].tolist() == [52, 61]
    assert len(ids) == 6
    assert (
        feed.prepare(clip(zoo, 0.5, "the cat")).special["dec"].tolist()
        == [True] * 4 + [False] * 2
    )


def test_old_folders_name_their_tokens_in_the_tokenizer_only(zoo):
    tokenizer = zoo.reader()
    tokenizer.add_tokens(["<|en|>", "<|transcribe|>", "<|notimestamps|>"])
    known = tokenizer.convert_tokens_to_ids(["<|en|>", "<|transcribe|>", "<|notimestamps|>"])
    old = {"no_timestamps_token_id": None, "is_multilingual": True}
    feed, _ = fed(zoo, tokenizer=tokenizer, **old)
    ids = feed.prepare(clip(zoo, 0.5, "the cat")).inputs["decoder_input_ids"]
    assert ids[:4].tolist() == [60, *known]


def test_a_transcript_without_a_tokenizer_is_refused(zoo):
    feed, _ = fed(zoo)
    with pytest.raises(ConfigError, match="a tokenizer for the transcripts") as caught:
        feed.prepare(clip(zoo, 0.5, "the cat"))
    assert caught.value.slug == "tokenizer-missing"


def test_nothing_is_written_to_the_terminal(zoo, capfd):
    feed, _ = fed(zoo)
    assert feed.prepare(clip(zoo, 0.5)) is not None
    assert capfd.readouterr() == ("", "")


@pytest.mark.real
@pytest.mark.skipif("ISOSCOPE_MODELS" not in os.environ, reason="ISOSCOPE_MODELS is not set")
def test_a_speech_of_1961_is_captured(zoo):
    soundfile = pytest.importorskip("soundfile")
    models = Path(os.environ["ISOSCOPE_MODELS"])
    speech = models.parent / "data" / "speech" / "jfk.flac"
    if not speech.is_file():
        pytest.skip("there is no speech beside ISOSCOPE_MODELS")
    folder = models / "whisper_tiny_en_fp16"
    model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    processor = AutoFeatureExtractor.from_pretrained(folder)
    loaded = zoo.Loaded(model, model.model, "audio", tokenizer, processor)
    samples, rate = soundfile.read(speech, dtype="float32")
    feed = WhisperFeed(loaded, length=512)
    document = zoo.Document("jfk", samples.mean(axis=1), rate=rate)
    ready = feed.prepare(document)
    ids = ready.inputs["decoder_input_ids"]
    assert ids[:2].tolist() == [50257, 50362]
    assert "country" in tokenizer.decode(ids[2:])
    assert (ready.length, ready.cost, ready.truncated) == (550, 1500, False)
    told = zoo.Document("told", samples.mean(axis=1), "And so, my fellow Americans", rate)
    sides = {"enc": model.model.encoder, "dec": model.model.decoder}
    zoo.same_alone_and_beside(feed, loaded, [document, told], sides)
