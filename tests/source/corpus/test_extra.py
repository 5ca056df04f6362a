"""Packages that only some corpora need."""

import sys

import pytest

from isoscope.errors import SourceError
from isoscope.source.corpus import open_corpus, resampled
from isoscope.source.corpus.extra import needed


def test_what_is_there_is_imported():
    assert needed("json", "audio", "audio").loads("3") == 3


@pytest.mark.parametrize(
    ("package", "extra", "name"),
    [("soundfile", "audio", "a.wav"), ("PIL.Image", "image", "a.png")],
)
def test_what_is_missing_says_how_to_get_it(tmp_path, monkeypatch, package, extra, name):
    (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(sys.modules, package, None)  # what Python does for a failed import
    with pytest.raises(SourceError, match="without") as caught:
        open_corpus(tmp_path / name, skip_bad=True)
    assert caught.value.hint == f"pip install 'isoscope[{extra}]'"
    assert caught.value.slug == "package-missing"


def test_a_missing_resampler_says_so(monkeypatch):
    import numpy as np

    monkeypatch.setitem(sys.modules, "soxr", None)
    with pytest.raises(SourceError, match="without soxr"):
        resampled(np.zeros(8, dtype=np.float32), 8000, 16000)


def test_opening_text_loads_none_of_them(tmp_path):
    import subprocess

    code = (
        "import sys; from isoscope.source.corpus import open_corpus; open_corpus(None)\n"
        "print({'soundfile', 'soxr', 'PIL', 'pyarrow', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
