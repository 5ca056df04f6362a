"""safetensors: every type of number, and no header believed before it is checked."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from isoscope.errors import SourceError
from isoscope.source import open_source
from isoscope.source.named_arrays import from_bfloat16


def packed(header, content=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + content


def entry(shape=(2, 2), dtype="F32", offsets=(0, 16)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@pytest.mark.parametrize(
    "dtype",
    ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "bool"],
)
def test_every_type_of_torch_is_read(dtype, tmp_path, whole):
    torch.manual_seed(0)
    tensor = (torch.randn(50, 4) * 10).to(getattr(torch, dtype))
    save_file({"x": tensor, "bias": torch.ones(3)}, tmp_path / "v.safetensors")
    source = open_source(tmp_path / "v.safetensors")
    np.testing.assert_array_equal(whole(source, 7), tensor.double().numpy())
    assert source.dtype == dtype


def test_every_bfloat16_is_widened_exactly():
    bits = np.arange(1 << 16, dtype=np.uint16)
    expected = torch.from_numpy(bits.view(np.int16)).view(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(from_bfloat16(bits), expected)


def test_documents_and_a_chosen_tensor(tmp_path, labels):
    tensors = {"a": torch.ones(6, 2), "b": torch.ones(6, 3), "doc": torch.arange(6) // 2}
    path = tmp_path / "v.safetensors"
    save_file(tensors, path)
    with pytest.raises(SourceError, match="got 2"):
        open_source(path)
    source = open_source(path, column="b", document="doc")
    assert source.width == 3 and labels(source)["documents"] == [0, 0, 1, 1, 2, 2]


def test_an_unknown_type_is_in_the_way_only_on_request(tmp_path):
    header = {
        "x": entry(),
        "f8": entry((4, 4), "F8_E4M3", (16, 32)),
        "__metadata__": {"a": "b"},
    }
    path = tmp_path / "v.safetensors"
    path.write_bytes(packed(header, bytes(32)))
    assert open_source(path).width == 2
    with pytest.raises(SourceError, match="raw bytes"):
        open_source(path, key="f8")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (packed(b"{}", length=2**62), f"expected {2**62 + 8} bytes"),
        (packed(b"{}", length=2**64 - 1), r"expected \d+ bytes"),
        (b"\x10\x00", "got 2"),
        (packed({"x": entry()}, bytes(15)), r"expected \d+ bytes in .*, got \d+"),
        (packed({"x": entry()}, bytes(17)), "bytes"),
        (packed({"x": entry(), "y": entry(offsets=(8, 24))}, bytes(24)), "overlaps"),
        (packed({"x": entry(), "y": entry(offsets=(20, 36))}, bytes(36)), "leaves a gap"),
        (packed({"x": entry(offsets=(2**62, 2**62 + 16))}, bytes(16)), "gap"),
        (packed({"x": entry((2**62, 4), offsets=(0, 16))}, bytes(16)), "16 bytes for shape"),
        (packed({"x": entry((-2, -2))}, bytes(16)), "negative"),
        (packed({"x": entry(offsets=(16, 0))}, bytes(16)), "negative"),
        (packed({"x": entry([1] * 40, offsets=(0, 4))}, bytes(4)), "too many sizes"),
        (packed({"x": entry((2, 2, 1))}, bytes(16)), "got 3 dimensions"),
        (packed({"x": entry((4,))}, bytes(16)), "got 1 dimension"),
        (packed({"x": entry((2, 0), offsets=(0, 0))}), "got width 0"),
        (packed({"x": entry((0, 2), offsets=(0, 0))}), "got 0 rows"),
        (packed({"x": {"dtype": "F32"}}, bytes(16)), "damaged"),
        (packed({"x": entry(("2", 2))}, bytes(16)), "damaged"),
        (packed(b"{nonsense}"), "damaged"),
        (packed(b'{"\xff": 1}'), "damaged"),
        (packed(b"[" * 100), "got something else"),
        (packed(b'{"x":' + b"[" * 100_000), "damaged"),
        (packed({}), "expected one two-dimensional array"),
    ],
)
def test_headers_that_lie_are_refused(content, words, tmp_path):
    (tmp_path / "v.safetensors").write_bytes(content)
    with pytest.raises(SourceError, match=words):
        open_source(tmp_path / "v.safetensors")


def test_a_name_with_a_line_end_stays_on_one_line(tmp_path):
    (tmp_path / "v.safetensors").write_bytes(packed({"x\ny": entry((4,))}, bytes(16)))
    with pytest.raises(SourceError) as caught:
        open_source(tmp_path / "v.safetensors")
    assert "\n" not in caught.value.problem and "[x?y]" in caught.value.problem


def test_a_header_of_forty_megabytes_is_refused(tmp_path):
    (tmp_path / "v.safetensors").write_bytes(packed(b"{" + b" " * 40_000_000 + b"}"))
    with pytest.raises(SourceError, match="a header of 40000002 bytes"):
        open_source(tmp_path / "v.safetensors")
