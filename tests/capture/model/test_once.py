"""GGUF files are parsed once."""

import gguf
import pytest

from isoscope.capture.model.assemble import PURE, gguf_cache


def test_the_same_file_is_parsed_once_and_the_package_is_left_as_it_was(tmp_path):
    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    before = {name: getattr(gguf, name) for name in PURE}
    with gguf_cache():
        assert gguf.GGUFReader(str(path)) is gguf.GGUFReader(str(path))
    assert {name: getattr(gguf, name) for name in PURE} == before
    assert gguf.GGUFReader(str(path)) is not gguf.GGUFReader(str(path))


def test_the_package_is_left_as_it_was_after_an_error():
    before = gguf.GGUFReader
    with pytest.raises(ValueError, match="broken"), gguf_cache():
        raise ValueError("broken")
    assert gguf.GGUFReader is before
