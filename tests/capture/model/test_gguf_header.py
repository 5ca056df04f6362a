"""The metadata of a GGUF file is what its writer was given, arrays skipped."""

import gguf
import pytest

from isoscope.capture.model.gguf_header import read_scalars


def written(path):
    """Write the metadata of a model without weights."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_token_list(["<pad>", "<bos>", "größe", ""])
    writer.add_token_scores([0.5, 1.0, 2.0, 3.0])
    writer.add_array("nested.words", [["a", "bc"], ["d"]])
    writer.add_bool("yes", True)
    writer.add_bool("no", False)
    writer.add_string("words", "with ümlaut")
    writer.add_float32("half", 0.5)
    writer.add_int64("below", -(2**40))
    writer.add_uint8("small", 200)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_single_values_are_read_and_arrays_skipped(tmp_path):
    found = read_scalars(written(tmp_path / "a.gguf"))
    assert found == {
        "general.architecture": "llama",
        "yes": True,
        "no": False,
        "words": "with ümlaut",
        "half": 0.5,
        "below": -(2**40),
        "small": 200,
    }
    assert isinstance(found["yes"], bool)


def test_values_are_those_of_the_gguf_package(tmp_path):
    path = written(tmp_path / "a.gguf")
    fields = gguf.GGUFReader(path).fields
    for key, value in read_scalars(path).items():
        assert fields[key].contents() == value


@pytest.mark.parametrize("kept", [3, 20, 60, 200])
def test_a_cut_file_is_refused(tmp_path, kept):
    path = written(tmp_path / "a.gguf")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"broken metadata|no GGUF"):
        read_scalars(path)


def test_another_file_is_refused(tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(ValueError, match="no GGUF file"):
        read_scalars(tmp_path / "a.gguf")
