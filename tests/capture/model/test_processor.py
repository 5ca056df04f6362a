"""Processors of audio and images."""

import pytest
import transformers

from isoscope.capture.model.load import load
from isoscope.capture.model.tokenizer import read_processor


def test_audio_has_a_feature_extractor(tiny):
    folder = tiny("whisper")
    transformers.WhisperFeatureExtractor(feature_size=8).save_pretrained(folder)
    loaded = load(folder)
    assert loaded.processor.feature_size == 8
    assert loaded.processor.sampling_rate == 16000


def test_images_have_an_image_processor(tiny):
    folder = tiny("vit")
    size = {"height": 16, "width": 16}
    transformers.ViTImageProcessor(size=size).save_pretrained(folder)
    assert load(folder).processor.size["height"] == 16


@pytest.mark.parametrize("kind", ["vit", "wav2vec2"])
def test_without_settings_there_is_none(tiny, kind):
    assert load(tiny(kind)).processor is None


def test_text_needs_none(tiny, said):
    folder = tiny("bert")
    (folder / "preprocessor_config.json").write_text("{}")
    assert read_processor(folder, "text", trust=False, say=said) is None


def test_broken_settings_are_reported(tiny, said):
    folder = tiny("vit")
    (folder / "preprocessor_config.json").write_text("{")
    assert read_processor(folder, "image", trust=False, say=said) is None
    assert said[0].startswith("warning: no processor of image can be made of")
