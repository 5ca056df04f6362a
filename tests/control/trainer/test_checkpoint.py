"""State beside a trainer's checkpoints."""

from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

from isoscope.control import CosReg, IStar, Watch
from isoscope.control.trainer.huggingface import Attachment, checkpoint_of
from isoscope.errors import ConfigError

NAME = "penalty-IStar-0.safetensors"


class Stub(SimpleNamespace):
    """A trainer that trains nothing, and notes what it was called with."""

    def __init__(self, model):
        self.calls, there = [], []
        super().__init__(
            model=model,
            compute_loss=None,
            log=None,
            train=lambda *given, **named: self.calls.append((given, named)),
            callback_handler=SimpleNamespace(callbacks=there),
            add_callback=there.append,
        )


@pytest.fixture
def attachment(network):
    made = Attachment.of(Stub(network))
    made.add(IStar(1.0, towards=torch.eye(3)))
    return made


@pytest.fixture(scope="module")
def network(tiny):
    from transformers import AutoModel

    return AutoModel.from_pretrained(tiny)


def penalty_of(attachment):
    return attachment.penalties[0].penalty


def at(folder, step, zero=True):
    args = SimpleNamespace(output_dir=str(folder))
    return args, SimpleNamespace(global_step=step, is_world_process_zero=zero), None


def test_it_is_written_beside_the_model_by_the_first_process(attachment, tmp_path):
    folder = checkpoint_of(*at(tmp_path, 7)[:2])
    attachment.on_save(*at(tmp_path, 7))  # the trainer has saved nothing there
    assert not folder.exists()
    folder.mkdir()
    attachment.on_save(*at(tmp_path, 7, zero=False))
    assert not list(folder.iterdir())
    attachment.on_save(*at(tmp_path, 7))
    assert torch.equal(load_file(folder / NAME)["shrinkage"], torch.eye(3))


def test_it_is_read_from_the_folder_resumed_or_that_of_the_step(attachment, tmp_path):
    elsewhere, penalty = tmp_path / "elsewhere", penalty_of(attachment)
    elsewhere.mkdir()
    penalty.shrinkage = 2 * torch.eye(3)
    (tmp_path / "checkpoint-7").mkdir()
    attachment.on_save(*at(tmp_path, 7))
    (tmp_path / "checkpoint-7" / NAME).rename(elsewhere / NAME)
    penalty.shrinkage = torch.eye(3)
    with pytest.warns(UserWarning, match=r"checkpoint-7 has no penalty-IStar-0\.safetensors"):
        attachment.on_train_begin(*at(tmp_path, 7))
    assert torch.equal(penalty.shrinkage, torch.eye(3))
    attachment.trainer.train(str(elsewhere))
    assert attachment.trainer.calls == [((str(elsewhere),), {})]
    attachment.on_train_begin(*at(tmp_path, 7))
    assert torch.equal(penalty.shrinkage, 2 * torch.eye(3))
    attachment.trainer.train(resume_from_checkpoint=True)
    assert attachment.resumed is None


def test_files_are_numbered_within_their_kind(network):
    attachment = Attachment.of(Stub(network))
    for thing in (IStar(), Watch(), CosReg(), IStar()):
        attachment.add(thing)
    assert [each.removesuffix(".safetensors") for each in attachment.files] == [
        "penalty-IStar-0", "watch-0", "penalty-CosReg-0", "penalty-IStar-1"
    ]  # fmt: skip
    names = [each.name for each in attachment.penalties]
    assert names == ["penalty/IStar", "penalty/CosReg", "penalty/IStar-1"]


@pytest.mark.parametrize("wrong", ["another's", "no file of tensors"])
def test_the_state_of_something_else_is_refused(attachment, tmp_path, wrong):
    folder = tmp_path / "checkpoint-7"
    folder.mkdir()
    other = {"_extra_state": torch.tensor([1, 1]), "x": torch.ones(2)}
    if wrong == "another's":
        save_file(other, folder / NAME)
    else:
        (folder / NAME).write_bytes(b"no")
    with pytest.raises(ConfigError, match=r"expected the state of IStar in penal") as caught:
        attachment.on_train_begin(*at(tmp_path, 7))
    assert caught.value.slug == "checkpoint-state"
