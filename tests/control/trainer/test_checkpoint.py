"""State beside a trainer's checkpoints."""

from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoscope.control import CosReg, IStar, Watch
from isoscope.control.trainer.checkpoint import Keeper, checkpoint_of, keep
from isoscope.errors import ConfigError


@pytest.fixture
def keeper(tmp_path):
    asked = []
    trainer = SimpleNamespace(train=lambda *given, **named: asked.append((given, named)))
    made = Keeper(trainer, IStar(1.0, towards=torch.eye(3)), "penalty-0")
    made.asked = asked
    return made


def at(folder, step, zero=True):
    args = SimpleNamespace(output_dir=str(folder))
    return args, SimpleNamespace(global_step=step, is_world_process_zero=zero), None


def test_it_is_written_beside_the_model_by_the_first_process(keeper, tmp_path):
    folder = checkpoint_of(*at(tmp_path, 7)[:2])
    keeper.on_save(*at(tmp_path, 7))  # the trainer has saved nothing there
    assert not folder.exists()
    folder.mkdir()
    keeper.on_save(*at(tmp_path, 7, zero=False))
    assert not list(folder.iterdir())
    keeper.on_save(*at(tmp_path, 7))
    assert torch.equal(load_file(folder / "penalty-0.safetensors")["shrinkage"], torch.eye(3))


def test_it_is_read_from_the_folder_resumed_or_that_of_the_step(keeper, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    keeper.module.shrinkage = 2 * torch.eye(3)
    (tmp_path / "checkpoint-7").mkdir()
    keeper.on_save(*at(tmp_path, 7))
    (tmp_path / "checkpoint-7" / keeper.file).rename(elsewhere / keeper.file)
    keeper.module.shrinkage = torch.eye(3)
    with pytest.warns(UserWarning, match=r"checkpoint-7 has no penalty-0\.safetensors"):
        keeper.on_train_begin(*at(tmp_path, 7))
    assert torch.equal(keeper.module.shrinkage, torch.eye(3))
    keeper.trainer.train(str(elsewhere))
    assert keeper.asked == [((str(elsewhere),), {})]
    keeper.on_train_begin(*at(tmp_path, 7))
    assert torch.equal(keeper.module.shrinkage, 2 * torch.eye(3))
    keeper.trainer.train(resume_from_checkpoint=True)
    assert keeper.resumed is None


def test_files_are_numbered_within_their_kind():
    there = []
    trainer = SimpleNamespace(
        train=None,
        callback_handler=SimpleNamespace(callbacks=there),
        add_callback=there.append,
    )
    for module, kind in (
        (IStar(), "penalty-IStar"),
        (Watch(), "watch"),
        (CosReg(), "penalty-CosReg"),
        (IStar(), "penalty-IStar"),
    ):
        keep(trainer, module, kind)
    assert [each.file.removesuffix(".safetensors") for each in there] == [
        "penalty-IStar-0", "watch-0", "penalty-CosReg-0", "penalty-IStar-1"
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["another's", "no file of tensors"])
def test_the_state_of_something_else_is_told(keeper, tmp_path, wrong):
    folder = tmp_path / "checkpoint-7"
    folder.mkdir()
    other = {"_extra_state": torch.tensor([1, 1]), "x": torch.ones(2)}
    if wrong == "another's":
        save_file(other, folder / keeper.file)
    else:
        (folder / keeper.file).write_bytes(b"no")
    with pytest.raises(ConfigError, match=r"expected the state of IStar in penal") as caught:
        keeper.on_train_begin(*at(tmp_path, 7))
    assert caught.value.slug == "checkpoint-state"
