"""Which files hold the weights."""

import json

import pytest

from isoscope.capture.model.folder import is_safe, weight_files
from isoscope.errors import IsoscopeError


def index(folder, names, stem="model.safetensors"):
    weights = {f"w{i}": name for i, name in enumerate(names)}
    (folder / f"{stem}.index.json").write_text(json.dumps({"weight_map": weights}))


def test_safetensors_come_before_torch_files(tmp_path):
    for name in ("model.safetensors", "pytorch_model.bin"):
        (tmp_path / name).touch()
    assert weight_files(tmp_path) == [tmp_path / "model.safetensors"]
    assert is_safe(weight_files(tmp_path))


def test_torch_files_serve_where_there_is_nothing_else(tmp_path):
    (tmp_path / "pytorch_model.bin").touch()
    assert weight_files(tmp_path) == [tmp_path / "pytorch_model.bin"]
    assert not is_safe(weight_files(tmp_path))


def test_an_index_names_its_parts_once_each(tmp_path):
    for name in ("a.safetensors", "b.safetensors"):
        (tmp_path / name).touch()
    index(tmp_path, ["b.safetensors", "a.safetensors", "b.safetensors"])
    assert weight_files(tmp_path) == [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]


@pytest.mark.parametrize("name", ["../../secret.safetensors", "/etc/passwd", 7])
@pytest.mark.parametrize("stem", ["model.safetensors", "pytorch_model.bin"])
def test_an_index_may_not_name_files_elsewhere(tmp_path, name, stem):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (tmp_path / "secret.safetensors").touch()
    index(folder, [name], stem)
    with pytest.raises(IsoscopeError, match="expected names of files in the folder"):
        weight_files(folder)


def test_a_missing_part_is_named(tmp_path):
    index(tmp_path, ["model-1.safetensors"])
    with pytest.raises(IsoscopeError, match=r"expected model-1\.safetensors") as e:
        weight_files(tmp_path)
    assert e.value.slug == "model-weights-missing"


@pytest.mark.parametrize("text", ["{}", '{"weight_map": []}', '{"weight_map": {}}'])
def test_an_index_of_nothing_is_unreadable(tmp_path, text):
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(IsoscopeError, match="names no weights"):
        weight_files(tmp_path)


def test_a_folder_without_weights_says_what_is_there(tmp_path):
    with pytest.raises(IsoscopeError, match="got an empty folder"):
        weight_files(tmp_path)
    for i in range(8):
        (tmp_path / f"file{i}.h5").touch()
    with pytest.raises(IsoscopeError, match=r"got file0\.h5, .* and 2 more"):
        weight_files(tmp_path)


def test_an_adapter_is_no_model(tmp_path):
    (tmp_path / "adapter_config.json").touch()
    with pytest.raises(IsoscopeError, match="an adapter of another model"):
        weight_files(tmp_path)
