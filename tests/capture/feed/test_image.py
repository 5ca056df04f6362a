"""Images are made ready as their folder says; tokens that are no patches are special."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import (
    BeitImageProcessorPil,
    BitImageProcessorPil,
    ConvNextImageProcessorPil,
    DeiTImageProcessorPil,
    ViTImageProcessorPil,
)

from isoscope.capture.feed.image import ImageFeed
from isoscope.errors import ConfigError

VISION = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
SQUARE = {"size": {"height": 32, "width": 32}}
CROPPED = {"size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32}}
STAGES = {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]}


def made(zoo, kind, processor, **settings):
    body = zoo.built(kind, **settings)
    return zoo.Loaded(body, body, "image", processor=processor)


@pytest.mark.parametrize(
    ("kind", "processor", "settings", "special"),
    [
        ("vit", ViTImageProcessorPil(**SQUARE), {}, 1),
        ("beit", BeitImageProcessorPil(**SQUARE, do_center_crop=False), {}, 1),
        ("deit", DeiTImageProcessorPil(**CROPPED), {}, 2),
        ("dinov2", BitImageProcessorPil(**CROPPED), {}, 1),
        (
            "dinov2_with_registers",
            BitImageProcessorPil(**CROPPED),
            {"num_register_tokens": 3},
            4,
        ),
    ],
)
def test_tokens_before_the_patches_are_special(zoo, kind, processor, settings, special):
    loaded = made(zoo, kind, processor, **VISION, **settings)
    feed = ImageFeed(loaded)
    sizes = [(40, 60), (100, 30), (3, 3)]
    documents = [zoo.Document(str(size), zoo.picture(*size)) for size in sizes]
    batch = zoo.same_alone_and_beside(feed, loaded, documents, {"": loaded.body})
    assert batch.inputs["pixel_values"].shape == (3, 3, 32, 32)
    marks = batch.marks("", 16 + special)
    assert marks.special[:, :special].all() and not marks.special[:, special:].any()
    ready = feed.prepare(documents[0])
    assert (ready.length, ready.cost, ready.truncated) == (16, 16, False)


@pytest.mark.parametrize(
    ("kind", "places"), [("convnext", [64, 16, 4, 1]), ("resnet", [64, 16, 4, 1])]
)
def test_all_places_of_a_stage_are_of_the_image(zoo, kind, places):
    loaded = made(zoo, kind, ViTImageProcessorPil(**SQUARE), **STAGES)
    feed = ImageFeed(loaded)
    ready = [feed.prepare(zoo.Document(str(n), zoo.picture(50, 50, n))) for n in range(2)]
    batch = feed.batch(ready)
    assert ready[0].length == 64
    for stage, count in zip(loaded.body.encoder.stages, places, strict=True):
        heard = zoo.heard(loaded, batch, stage)
        assert heard.shape[2] * heard.shape[3] == count
        marks = batch.marks("", count)
        assert marks.real.all() and not marks.special.any()


def test_hierarchies_of_patches_have_no_special_ones(zoo):
    settings = {"embed_dim": 8, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4}
    loaded = made(
        zoo, "swin", ViTImageProcessorPil(**SQUARE), image_size=32, patch_size=4, **settings
    )
    feed = ImageFeed(loaded)
    batch = feed.batch([feed.prepare(zoo.Document("a", zoo.picture(32, 32)))])
    for layer, count in zip(loaded.body.encoder.layers, (16, 16), strict=True):
        assert zoo.heard(loaded, batch, layer).shape[1] == count
        assert not batch.marks("", count).special.any()


def test_pixels_are_normalised_as_the_folder_says(zoo):
    processor = ViTImageProcessorPil(**SQUARE, image_mean=[0.5] * 3, image_std=[0.25] * 3)
    feed = ImageFeed(made(zoo, "vit", processor, **VISION))
    white = np.full((32, 32, 3), 255, dtype=np.uint8)
    pixels = feed.prepare(zoo.Document("a", white)).inputs["pixel_values"]
    assert np.allclose(pixels, 2)


def test_the_middle_is_cropped_only_where_the_folder_says_so(zoo):
    image = np.zeros((32, 64, 3), dtype=np.uint8)
    image[:, :8] = 255  # an edge that a crop of the middle would lose
    whole = ImageFeed(made(zoo, "vit", ViTImageProcessorPil(**SQUARE), **VISION))
    middle = ImageFeed(
        made(zoo, "vit", ConvNextImageProcessorPil(size={"shortest_edge": 32}), **VISION)
    )
    assert np.ptp(whole.prepare(zoo.Document("a", image)).inputs["pixel_values"]) > 1
    assert np.ptp(middle.prepare(zoo.Document("a", image)).inputs["pixel_values"][0]) < 0.1


def test_pixels_have_the_type_of_the_weights(zoo):
    loaded = made(zoo, "vit", ViTImageProcessorPil(**SQUARE), **VISION)
    loaded.body.to(torch.bfloat16)
    feed = ImageFeed(loaded)
    batch = feed.batch([feed.prepare(zoo.Document("a", zoo.picture(9, 9)))])
    assert batch.inputs["pixel_values"].dtype == torch.bfloat16


def test_patches_may_be_oblong_or_unknown(zoo):
    feed = ImageFeed(made(zoo, "vit", ViTImageProcessorPil(**SQUARE), **VISION))
    pixels = np.zeros((3, 32, 32), dtype=np.float32)
    for size, count in (((8, 16), 8), ([16, 16], 4), ([7, 3, 3, 3], None), (None, None)):
        feed.config = SimpleNamespace(patch_size=size)
        assert feed.patches(pixels) == count


def test_images_of_different_sizes_cannot_stand_side_by_side(zoo):
    feed = ImageFeed(made(zoo, "resnet", ViTImageProcessorPil(do_resize=False), **STAGES))
    ready = [feed.prepare(zoo.Document("a", zoo.picture(32, n))) for n in (32, 64)]
    with pytest.raises(ConfigError, match=r"got \(32, 32\) and \(32, 64\)") as caught:
        feed.batch(ready)
    assert caught.value.slug == "image-size"


@pytest.mark.parametrize(
    "content",
    [
        "words",
        np.zeros(9),
        np.zeros((4, 4, 3)),
        np.zeros((0, 4, 3), np.uint8),
        np.zeros((4, 4, 4), np.uint8),
    ],
)
def test_what_is_no_image_is_refused(zoo, content):
    feed = ImageFeed(made(zoo, "vit", ViTImageProcessorPil(**SQUARE), **VISION))
    with pytest.raises(ConfigError, match="expected an image, got") as caught:
        feed.prepare(zoo.Document("a", content))
    assert caught.value.slug == "corpus-kind"


def test_a_folder_that_says_nothing_of_images_is_refused(zoo):
    with pytest.raises(ConfigError, match=r"preprocessor_config\.json"):
        ImageFeed(made(zoo, "vit", None, **VISION))
