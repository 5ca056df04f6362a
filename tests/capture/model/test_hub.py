"""Models by name, from a hub on loopback that also breaks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from isoscope.capture.model.hub import download
from isoscope.capture.model.load import load
from isoscope.errors import IsoscopeError

NAME = "lab/tiny"


@pytest.fixture
def served(hub, tiny):
    hub.repositories[NAME] = {
        "main": tiny(seed=0, name="one"),
        "step1000": tiny(seed=1, name="two"),
    }
    return hub


def same_weights(model, folder):
    stored = load_file(folder / "model.safetensors")
    ours = model.state_dict()
    return all(torch.equal(ours[name], tensor) for name, tensor in stored.items())


def leftovers(tmp_path):
    return [p for p in (tmp_path / "home").rglob("*") if p.name.endswith(".incomplete")]


def test_each_revision_has_its_own_weights(served, said):
    first = load(NAME, say=said)
    second = load(f"{NAME}@step1000", say=said)
    folders = served.repositories[NAME]
    assert same_weights(first.model, folders["main"])
    assert same_weights(second.model, folders["step1000"])
    assert first.identity["sha"] != second.identity["sha"]
    assert first.identity["config"] == second.identity["config"]
    assert first.identity["revision"] == served.commit(NAME, "main")
    assert second.identity["revision"] == served.commit(NAME, "step1000")
    assert (first.name, second.name) == (NAME, f"{NAME}@step1000")
    assert second.tokenizer("the cat")["input_ids"][0] == 2


def test_a_download_is_reported_before_anything_is_requested(served):
    asked_when_said = []
    load(NAME, say=lambda line: asked_when_said.append((line, len(served.asked))))
    host = served.address.removeprefix("http://")
    assert asked_when_said[0] == (f"downloading {NAME} from {host}", 0)


def test_the_revision_may_be_an_argument(served):
    assert load(NAME, revision="step1000").name == f"{NAME}@step1000"


def test_two_different_revisions_are_refused(served):
    with pytest.raises(IsoscopeError, match="got 'main' and 'step1000'"):
        load(f"{NAME}@main", revision="step1000")
    assert served.asked == []


def test_a_missing_revision_says_that_the_name_exists(served):
    with pytest.raises(
        IsoscopeError, match=r"lab/tiny is on .* no revision of it .* 'step7'"
    ) as e:
        load(f"{NAME}@step7")
    assert e.value.slug == "hub-revision"


def test_a_commit_that_does_not_exist_is_a_missing_revision(served):
    with pytest.raises(IsoscopeError) as e:
        load(f"{NAME}@{'0' * 40}")
    assert e.value.slug == "hub-revision"


def test_an_unknown_name_says_how_to_pass_a_folder(served):
    with pytest.raises(IsoscopeError, match="no model is called 'lab/other'") as e:
        load("lab/other")
    assert e.value.slug == "model-not-found"
    assert "./model" in e.value.hint


def test_a_name_the_hub_cannot_have_is_not_found(served, said):
    with pytest.raises(IsoscopeError, match="got 'no such name'") as e:
        load("no such name", say=said)
    assert e.value.slug == "model-not-found"
    assert served.asked == said == []


def test_a_connection_cut_in_the_weights_is_an_error_and_leaves_nothing_behind(
    served, tmp_path
):
    served.cuts = 100
    with pytest.raises(IsoscopeError, match="looked for lab/tiny") as e:
        load(NAME)
    assert e.value.slug == "hub-offline"
    assert served.cuts < 100
    assert list((tmp_path / "home").rglob("*.safetensors")) == leftovers(tmp_path) == []
    served.cuts = 0
    again = load(NAME)
    assert same_weights(again.model, served.repositories[NAME]["main"])


def test_a_commit_cut_short_is_not_taken_from_the_cache(served):
    commit = served.commit(NAME, "main")
    served.cuts = 100
    with pytest.raises(IsoscopeError):
        load(f"{NAME}@{commit}")
    served.cuts = 0
    assert same_weights(load(f"{NAME}@{commit}").model, served.repositories[NAME]["main"])


def test_a_connection_that_ends_early_once_is_resumed(served):
    served.cuts, served.reset = 1, False
    assert same_weights(load(NAME).model, served.repositories[NAME]["main"])
    assert sum(path.endswith(".safetensors") for path in served.files()) == 2


def test_no_server_is_an_error_that_says_what_was_looked_for(hub, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # the discard port: nobody there
    with pytest.raises(IsoscopeError, match=r"looked for lab/tiny@x .* 127\.0\.0\.1:9") as e:
        load(f"{NAME}@x")
    assert e.value.slug == "hub-offline"
    assert "folder" in e.value.hint


def test_a_hub_that_fails_is_like_no_hub(served):
    served.failing = 500
    with pytest.raises(IsoscopeError) as e:
        load(NAME)
    assert e.value.slug == "hub-offline"


def test_a_model_that_asks_for_permission_says_so(served):
    served.gated.add(NAME)
    with pytest.raises(IsoscopeError, match="without permission") as e:
        load(NAME)
    assert e.value.slug == "hub-refused"


def test_a_commit_in_the_cache_needs_no_network(served, said):
    commit = served.commit(NAME, "step1000")
    first = load(f"{NAME}@step1000")
    served.asked.clear()
    again = load(f"{NAME}@{commit}", say=said)
    assert served.asked == said == []
    assert again.identity["sha"] == first.identity["sha"]
    assert again.identity["revision"] == commit


def test_a_branch_in_the_cache_is_requested_but_not_fetched_again(served):
    load(NAME)
    served.asked.clear()
    load(NAME)
    assert served.files() == []


def test_a_branch_in_the_cache_serves_when_the_hub_is_gone(served, monkeypatch):
    load(NAME)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert load(NAME).identity["revision"] == served.commit(NAME, "main")


def test_torch_files_and_code_are_fetched_only_when_needed(served, said):
    folder = served.repositories[NAME]["main"]
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "modeling.py").write_text("raise SystemExit")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.safetensors").write_bytes(b"x")
    got, _ = download(NAME, None, code=False, weights=True, say=said)
    names = {p.relative_to(got).as_posix() for p in got.rglob("*") if p.is_file()}
    assert "model.safetensors" in names
    assert not names & {"pytorch_model.bin", "modeling.py", "onnx/model.safetensors"}


def test_torch_files_are_fetched_where_there_is_nothing_else(served):
    folder = served.repositories[NAME]["main"]
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    loaded = load(NAME)
    assert loaded.identity["parameters"] > 0
    served.asked.clear()
    load(f"{NAME}@{loaded.identity['revision']}")
    assert served.asked == []


def test_random_weights_need_no_weights_from_the_hub(served):
    assert load(NAME, untrained=True).identity["untrained"]
    assert not [path for path in served.files() if path.endswith(".safetensors")]


@pytest.mark.slow
def test_it_works_in_a_process_that_knows_nothing_but_the_environment(served, tmp_path):
    code = (
        "from isoscope.capture.model.load import load; import sys\n"
        f"loaded = load('{NAME}@step1000', say=lambda s: print(s, file=sys.stderr))\n"
        "print(loaded.identity['revision'])"
    )
    source = Path(__file__).parents[3] / "src"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == served.commit(NAME, "step1000")
    assert done.stderr.strip() == f"downloading {NAME}@step1000 from {served.address[7:]}"
