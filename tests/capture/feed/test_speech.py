"""Frames of models that listen to the wave: padding neither counts nor changes them."""

import numpy as np
import pytest

from isoscope.capture.feed.sound import WaveFeed


def clips(zoo, *seconds):
    return [
        zoo.Document(str(s), zoo.noise(s, seed=n), rate=16_000) for n, s in enumerate(seconds)
    ]


@pytest.mark.parametrize("kind", ["wav2vec2", "hubert", "wavlm"])
def test_company_changes_nothing(zoo, kind):
    loaded = zoo.wave_model(kind, "layer")
    feed = WaveFeed(loaded)
    assert feed.mixes_lengths
    documents = clips(zoo, 0.2, 0.5, 0.333)
    batch = zoo.same_alone_and_beside(
        feed, loaded, documents, {"": loaded.body.encoder.layers[1]}
    )
    marks = batch.marks("", 24)
    assert marks.real.sum(dim=1).tolist() == [9, 24, 16]
    assert not marks.special.any() and marks.tokens is None


@pytest.mark.parametrize("samples", [399, 400, 719, 720, 5000, 8000])
def test_frames_are_counted_as_the_model_does(zoo, samples):
    loaded = zoo.wave_model("wav2vec2", "layer")
    feed = WaveFeed(loaded)
    expected = int(loaded.body._get_feat_extract_output_lengths(samples * np.ones(1, int)[0]))
    assert feed.frames(samples) == max(0, expected)
    if expected > 0:
        assert feed.frames(feed.samples(expected)) == expected
        assert feed.frames(feed.samples(expected) - 1) == expected - 1


def test_group_norm_gets_clips_of_equal_length_and_no_mask(zoo):
    loaded = zoo.wave_model("wav2vec2", "group")
    feed = WaveFeed(loaded)
    assert not feed.mixes_lengths
    nearly = clips(zoo, 0.5, 0.49, 0.504)
    batch = zoo.same_alone_and_beside(feed, loaded, nearly, {"": loaded.body.encoder})
    assert set(batch.inputs) == {"input_values"}
    assert batch.marks("", 24).real.all()
    with pytest.raises(ValueError, match="equal lengths only"):
        feed.batch([feed.prepare(each) for each in clips(zoo, 0.2, 0.5)])


def test_half_a_minute_is_captured(zoo):
    feed = WaveFeed(zoo.wave_model("wav2vec2", "layer"))
    long, short = clips(zoo, 30.5, 29.9)
    assert feed.prepare(long).truncated and not feed.prepare(short).truncated
    assert feed.prepare(long).length == feed.frames(30 * 16_000)


@pytest.mark.parametrize("samples", [0, 100, 500])
def test_less_than_two_frames_is_nothing_to_measure(zoo, samples):
    feed = WaveFeed(zoo.wave_model("wav2vec2", "layer"))
    silence = np.zeros(samples, dtype=np.float32)
    assert feed.prepare(zoo.Document("a", silence, rate=16_000)) is None


def test_another_rate_gives_as_many_frames(zoo):
    feed = WaveFeed(zoo.wave_model("wav2vec2", "layer"))
    there = feed.prepare(zoo.Document("a", zoo.noise(0.5, rate=44_100), rate=44_100))
    assert there.length == there.cost == 24


def test_samples_are_normalised_as_the_folder_says(zoo):
    feed = WaveFeed(zoo.wave_model("wav2vec2", "layer"))
    ready = feed.prepare(zoo.Document("a", 3 + 5 * zoo.noise(0.5), rate=16_000))
    values = ready.inputs["input_values"]
    assert abs(values.mean()) < 1e-4 and abs(values.std() - 1) < 1e-3
