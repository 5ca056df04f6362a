"""Sound arrives as float32 at the rate of the model."""

import builtins

import numpy as np
import pytest

from isoscope.capture.feed.sound import extractor, samples_of
from isoscope.errors import ConfigError, SourceError


def test_samples_at_the_right_rate_stay_as_they_are(zoo):
    samples = zoo.noise(0.1)
    assert np.array_equal(samples_of(zoo.Document("a", samples, rate=16_000), 16_000), samples)


def test_a_tone_keeps_its_pitch_when_resampled(zoo):
    tone = np.sin(2 * np.pi * 440 * np.arange(44_100) / 44_100)
    found = samples_of(zoo.Document("a", tone, rate=44_100), 16_000)
    assert found.dtype == np.float32 and len(found) == 16_000
    assert np.abs(np.fft.rfft(found)).argmax() == 440


@pytest.mark.parametrize("content", ["words", np.zeros((2, 2)), np.zeros(3, dtype=int), None])
def test_what_is_not_sound_is_refused(zoo, content):
    with pytest.raises(ConfigError, match="expected audio, got") as caught:
        samples_of(zoo.Document("a", content, rate=16_000), 16_000)
    assert caught.value.slug == "corpus-kind"


def test_a_rate_of_nothing_is_refused(zoo):
    with pytest.raises(SourceError, match="expected a sampling rate above 0, got 0 in 'a'"):
        samples_of(zoo.Document("a", zoo.noise(0.1)), 16_000)


def test_without_soxr_the_extra_is_named(zoo, monkeypatch):
    there = builtins.__import__

    def absent(name, *rest):
        if name == "soxr":
            raise ImportError(name)
        return there(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(ConfigError, match="from 8000 to 16000") as caught:
        samples_of(zoo.Document("a", zoo.noise(0.1), rate=8000), 16_000)
    assert caught.value.hint == "pip install 'isoscope[audio]'"


def test_the_extractor_is_found_inside_a_processor(zoo):
    class Whole:
        feature_extractor = "inside"

    assert extractor(zoo.Loaded(None, None, processor=Whole())) == "inside"
    assert extractor(zoo.Loaded(None, None, processor="itself")) == "itself"
    with pytest.raises(ConfigError, match=r"preprocessor_config\.json"):
        extractor(zoo.Loaded(None, None))
