"""Names of checkpoints, known lists of revisions, and a hub on loopback."""

import shutil

import pytest

import isoscope as iso
from isoscope.errors import ConfigError, IsoscopeError
from isoscope.study.series import (
    MACHINA,
    PYTHIA,
    find_checkpoints,
    read_files,
    step_of,
)

NAME = "lab/series"
OPTIONS = {"sites": "norm.out", "measures": "mean-cosine", "no_theories": True}


def test_pythia_has_154_steps_and_machina_21_of_them():
    assert len(PYTHIA) == 154 and PYTHIA[:4] == ("step0", "step1", "step2", "step4")
    assert PYTHIA[9:12] == ("step256", "step512", "step1000") and PYTHIA[-1] == "step143000"
    thousands = (
        0, 7, 14, 21, 28, 35, 42, 50, 57, 64, 71, 78, 85, 92, 100, 107, 114, 121, 128, 135, 143
    )  # fmt: skip
    assert tuple(f"step{each * 1000}" for each in thousands) == MACHINA
    assert set(MACHINA) <= set(PYTHIA)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("global_step500", 500),
        ("checkpoint-1000", 1000),
        ("iter_0000200", 200),
        ("step1000-tokens4B", 1000),
        ("epoch=3", 3),
        ("main", None),
        ("v1.5", None),
        ("epoch_0.5", None),
        ("step_1e5", None),
        ("step_5", 5),
        ("global_step_1e3", None),
        ("step500-epoch3", 500),
        ("epoch=3-step=500", 500),
        ("été 7 – checkpoint 40 (copy)", 40),
        ("étape 200", 200),
    ],
)
def test_the_step_is_told_from_the_name(name, step):
    assert step_of(name) == step


def made(folder, names):
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text("{}")
    return folder


def test_what_the_trainer_leaves_beside_checkpoints_is_ignored(tmp_path):
    folder = made(tmp_path, ("checkpoint-500", "checkpoint-1000"))
    (folder / "runs").mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "latest").symlink_to(folder / "checkpoint-1000")
    found = find_checkpoints([str(folder)])
    assert [(each.step, each.name) for each in found] == [
        (500, "checkpoint-500"), (1000, "checkpoint-1000")
    ]  # fmt: skip


def test_what_a_trainer_is_still_writing_is_ignored(tmp_path):
    folder = made(tmp_path, ("checkpoint-5", "checkpoint-10", "tmp-checkpoint-10", ".step_3"))
    assert [each.step for each in find_checkpoints([str(folder)])] == [5, 10]


def test_files_and_links_are_named_by_what_tells_their_step(tmp_path):
    elsewhere = made(tmp_path, ("away/other", "away/step_9"))
    folder = tmp_path / "series"
    folder.mkdir()
    (folder / "5.gguf").write_bytes(b"GGUF")
    (folder / "step_7").symlink_to(elsewhere / "away" / "other")
    (folder / "best").symlink_to(elsewhere / "away" / "step_9")
    assert [each.step for each in find_checkpoints([str(folder)])] == [5, 7, 9]
    listed = find_checkpoints([str(folder / name) for name in ("best", "5.gguf", "step_7")])
    assert [each.step for each in listed] == [5, 7, 9]


def test_a_folder_above_the_checkpoints_is_told_which_one_holds_them(tmp_path):
    made(tmp_path, ("run/checkpoints/step_1", "run/checkpoints/step_2"))
    with pytest.raises(ConfigError, match="got none") as caught:
        find_checkpoints([str(tmp_path / "run")])
    assert "checkpoints': name that folder" in caught.value.hint


def test_known_lists_are_revisions_in_the_order_of_steps():
    found = find_checkpoints(["lab/series"], ["machina", "step1000", "step7000"])
    assert len(found) == 22 and [each.step for each in found[:3]] == [0, 1000, 7000]
    assert found[1].where == "lab/series@step1000"
    assert len(find_checkpoints(["a/b"], ["pythia"])) == 154


def test_a_torch_file_that_is_cut_is_known_before_it_is_loaded(tmp_path):
    import torch

    folder = made(tmp_path, ("step_1",)) / "step_1"
    weights = folder / "pytorch_model.bin"
    torch.save({"a": torch.ones(64)}, weights)
    assert read_files(str(folder)).problem == ""
    weights.write_bytes(weights.read_bytes()[:-30])
    assert "that is cut" in read_files(str(folder)).problem


@pytest.fixture
def served(hub, checkpoints):
    hub.repositories[NAME] = {
        f"step{step}": checkpoints / f"step_{step}" for step in (0, 10, 20)
    }
    return hub


def test_revisions_are_downloaded_and_equal_the_folders(served, checkpoints, corpus, tmp_path):
    found = iso.trajectory(NAME, corpus, revisions="step0,step10", **OPTIONS)
    local = tmp_path / "local"
    for step in (0, 10):
        shutil.copytree(checkpoints / f"step_{step}", local / f"step_{step}")
    assert found[0].values == iso.trajectory(local, corpus, **OPTIONS)[0].values


def test_a_missing_revision_is_named_before_anything_is_downloaded(served, corpus):
    with pytest.raises(IsoscopeError, match="no revision of it is called 'step11'") as caught:
        iso.trajectory(NAME, corpus, revisions="step0,step11", **OPTIONS)
    assert caught.value.slug == "hub-revision" and "step10" in caught.value.hint
    assert served.files() == []


def test_a_cut_download_names_the_checkpoint_and_is_resumed(served, corpus, tmp_path):
    iso.survey(f"{NAME}@step0", corpus, sites="norm.out", measures="mean-cosine")
    served.cuts = 100
    target = tmp_path / "run"
    with pytest.raises(IsoscopeError, match="checkpoint step10 of step 10") as caught:
        iso.trajectory(NAME, corpus, revisions="step0,step10", output=target, **OPTIONS)
    assert caught.value.slug == "hub-offline"
    assert len(list(target.glob("stage-1/unit-*"))) == 1
    served.cuts = 0
    found = iso.trajectory(NAME, corpus, revisions="step0,step10", output=target, **OPTIONS)
    assert found[0].steps == [0, 10]


def test_a_first_checkpoint_that_cannot_be_loaded_is_skipped_where_that_is_asked_for(
    served, checkpoints, corpus, tmp_path
):
    empty = tmp_path / "empty"
    shutil.copytree(checkpoints / "step_0", empty)
    (empty / "model.safetensors").write_bytes(b"nothing")
    served.repositories[NAME]["step0"] = empty
    options = {"revisions": "step0,step10,step20", **OPTIONS}
    with pytest.raises(IsoscopeError, match="checkpoint step0 of step 0") as caught:
        iso.trajectory(NAME, corpus, **options)
    assert "--skip-broken" in caught.value.hint
    found = iso.trajectory(NAME, corpus, skip_broken=True, **options)
    assert found[0].steps == [10, 20] and found.shared["series"] == NAME
    assert any("step0" in text for text in found.remarks)


def test_free_deletes_what_was_downloaded_and_nothing_else(served, corpus, tmp_path):
    kept = iso.survey(f"{NAME}@step10", corpus, sites="norm.out", measures="mean-cosine")
    assert kept
    iso.trajectory(NAME, corpus, revisions="step0,step10,step20", free=True, **OPTIONS)
    snapshots = list((tmp_path / "home").rglob("snapshots/*"))
    assert [each.name for each in snapshots] == [served.commit(NAME, "step10")]
    weights = [each for each in (tmp_path / "home").rglob("model.safetensors")]
    assert [each.parent.name for each in weights] == [served.commit(NAME, "step10")]
    assert weights[0].resolve().stat().st_size > 1000
    blobs = list((tmp_path / "home").rglob("blobs/*"))
    assert len(blobs) == len(list(snapshots[0].iterdir()))


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({}, "series-revisions"),
        ({"revisions": "step0"}, "series-one"),
        ({"revisions": "step0,main"}, "series-step"),
    ],
)
def test_a_name_of_the_hub_needs_revisions_that_tell_their_step(corpus, options, slug):
    with pytest.raises(IsoscopeError) as caught:
        iso.trajectory("lab/other", corpus, **options)
    assert caught.value.slug == slug


def test_a_folder_has_no_revisions(checkpoints, corpus):
    with pytest.raises(IsoscopeError) as caught:
        iso.trajectory(checkpoints, corpus, revisions="step0,step10")
    assert caught.value.slug == "series-revisions"
