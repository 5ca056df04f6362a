"""What a file is, going by its name."""

import pytest

from isoscope.source.corpus.suffix import FORMATS, KIND_OF, format_of, is_labels


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("a.txt", "text"),
        ("A.TXT", "text"),
        ("a.b.md", "text"),
        ("a.txt.gz", "text"),
        ("a.jsonl.gz", "jsonl"),
        ("a.pq", "parquet"),
        ("a.parquet.gz", None),
        ("a.wav.gz", None),
        ("a.FLAC", "audio"),
        ("a.jpeg", "image"),
        ("t-images-idx3-ubyte", "idx"),
        ("t-images.idx3-ubyte.gz", "idx"),
        ("t-labels-idx1-ubyte", "idx"),
        ("a.json", None),
        ("txt", None),
        ("", None),
    ],
)
def test_names_stand_for_formats(name, found):
    assert format_of(name) == found


def test_every_format_has_its_kind():
    assert set(FORMATS.values()) | {"idx"} == set(KIND_OF)


def test_labels_are_told_from_images():
    assert is_labels("t10k-labels-idx1-ubyte.gz") and not is_labels("t10k-images-idx3-ubyte")
