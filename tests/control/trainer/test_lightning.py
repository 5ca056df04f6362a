"""Lightning: a callback adds the penalty, logs it, and keeps its state."""

import warnings
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from isoscope.control import Alert, CosReg, IStar, Tangents, Watch
from isoscope.errors import ConfigError, UnknownNameError

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from lightning.pytorch import LightningModule, Trainer

    from isoscope.control.trainer.lightning import PenaltyCallback, WatchCallback


class Net(LightningModule):
    """Two layers and a head."""

    def __init__(self, as_dict=False, manual=False):
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.head = torch.nn.Linear(8, 2)
        self.as_dict, self.losses = as_dict, []
        self.automatic_optimization = not manual

    def training_step(self, batch, index):
        rows, labels = batch
        loss = torch.nn.functional.cross_entropy(self.head(self.first(rows).mean(1)), labels)
        self.losses.append(loss.item())
        if index == 1:
            return None
        return {"loss": loss} if self.as_dict else loss

    def on_before_optimizer_step(self, optimizer):
        found = self.first.linear1.weight.grad  # none where a step was skipped
        self.slope = None if found is None else found.norm().item()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-2)


@pytest.fixture
def data():
    generator = torch.manual_seed(2)
    rows = torch.randn(24, 5, 8, generator=generator)
    return DataLoader(TensorDataset(rows, torch.arange(24) % 2), batch_size=8)


def fitted(net, data, tmp_path, *callbacks, **given):
    trainer = Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        callbacks=list(callbacks), **given,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(net, data)
    return trainer


@pytest.mark.parametrize("as_dict", [False, True])
def test_the_penalty_is_added_and_logged(data, tmp_path, as_dict):
    penalty = IStar(weight=5.0)
    plain, net = Net(), Net(as_dict)
    fitted(plain, data, tmp_path)
    trainer = fitted(net, data, tmp_path, PenaltyCallback(penalty, modules=["first"]))
    assert penalty.call == 2  # of three steps the module skips one
    assert net.losses[0] == plain.losses[0] and net.losses[2] != plain.losses[2]
    assert trainer.callback_metrics["penalty/IStar"].item() > 0
    assert net.slope != plain.slope


def test_the_module_is_left_as_it_was(data, tmp_path):
    net = Net()
    fitted(net, data, tmp_path, PenaltyCallback(IStar(), modules=["first"]))
    assert "training_step" not in vars(net)
    assert not net.first._forward_hooks


def test_a_model_of_transformers_needs_no_names(tiny, tmp_path):
    from transformers import AutoModel

    class Wrapped(LightningModule):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(tiny).train()

        def training_step(self, batch, index):
            return self.model(input_ids=batch[0]).last_hidden_state.square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    ids = torch.randint(4, 20, (16, 6), generator=torch.manual_seed(0))
    penalty = IStar(1.0)
    fitted(
        Wrapped(), DataLoader(TensorDataset(ids), batch_size=8), tmp_path,
        PenaltyCallback(penalty),
    )  # fmt: skip
    assert penalty.call == 2 and penalty.reading is not None


def test_its_state_goes_with_the_checkpoint(data, tmp_path):
    first = PenaltyCallback(IStar(1.0, towards="running"), modules=["first"])
    trainer = fitted(Net(), data, tmp_path, first)
    trainer.save_checkpoint(tmp_path / "kept.ckpt")
    again = PenaltyCallback(IStar(1.0, towards="running"), modules=["first"])
    again.load_state_dict(first.state_dict())
    assert torch.equal(again.penalty.shrinkage, first.penalty.shrinkage)
    assert again.penalty.call == 2


def test_one_penalty_in_two_callbacks_is_refused(data, tmp_path):
    penalty = IStar()
    twice = [PenaltyCallback(penalty, modules=[name]) for name in ("first", "head")]
    with pytest.raises(ConfigError, match="cannot attach one") as caught:
        fitted(Net(), data, tmp_path, *twice)
    assert caught.value.slug == "attached-twice"


def test_unknown_modules_are_refused_before_the_first_step(data, tmp_path):
    net = Net()
    with pytest.raises(UnknownNameError, match="no module is called 'firsts'"):
        fitted(net, data, tmp_path, PenaltyCallback(IStar(), modules=["firsts"]))
    assert not net.losses and "training_step" not in vars(net)


def test_manual_optimisation_is_refused(data, tmp_path):
    with pytest.raises(ConfigError, match="manual optimisation") as caught:
        fitted(Net(manual=True), data, tmp_path, PenaltyCallback(IStar(), modules=["first"]))
    assert caught.value.slug == "trainer-kind"


def test_other_stages_are_left_alone(data):
    net = Net()
    callback = PenaltyCallback(IStar(), modules=["first"])
    callback.setup(None, net, "test")
    callback.teardown(None, net, "test")
    assert "training_step" not in vars(net)


def test_a_watch_reads_every_few_steps_of_the_optimiser(data, tmp_path):
    said = []
    watch = Watch(every=2, modules=["first"], log=lambda numbers, step: said.append(step))
    fitted(Net(), DataLoader(data.dataset, batch_size=4), tmp_path, WatchCallback(watch))
    assert said == [2, 4, 6] or said == [2, 4]  # one of six steps is skipped by the module
    assert "anisotropy/mean-cosine/first.batch" in watch.history


def test_accumulated_batches_are_one_step(data, tmp_path):
    said = []
    watch = Watch(every=1, modules=["first"], log=lambda numbers, step: said.append(step))
    loader = DataLoader(data.dataset, batch_size=4)
    fitted(Net(), loader, tmp_path, WatchCallback(watch), accumulate_grad_batches=3)
    assert said == [1, 2]


def test_an_alarm_stops_lightning_and_its_history_is_kept(data, tmp_path):
    class Always:
        name = "always"

        def __call__(self, history):
            return [Alert("always", 1, "loss", 1.0, 0.0)] if history else []

    callback = WatchCallback(
        Watch(every=1, modules=["first"], rules=[Always()], on_alert=lambda alert: True)
    )
    trainer = fitted(Net(), data, tmp_path, callback)
    assert trainer.global_step == 1
    again = WatchCallback(Watch(every=1, modules=["first"]))
    again.load_state_dict(callback.state_dict())
    assert again.watch.history == callback.watch.history


def test_numbers_go_to_the_loggers_of_the_trainer(data, tmp_path):
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(tmp_path)
    watch = Watch(every=1, modules=["first"])
    trainer = Trainer(
        max_epochs=1, accelerator="cpu", logger=logger, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[WatchCallback(watch)],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(Net(), data)
    logger.save()
    text = next(tmp_path.rglob("metrics.csv")).read_text()
    assert "anisotropy/effective-rank/first.batch" in text.splitlines()[0]


class Failing(Net):
    """Raises in its second step, before or after the pass."""

    late = False

    def training_step(self, batch, index):
        if index == 1 and not self.late:
            raise KeyError("early")
        found = super().training_step(batch, index)
        if index == 1:
            raise KeyError("late")
        return found


@pytest.mark.parametrize("late", [False, True])
def test_an_exception_leaves_nothing_behind(data, tmp_path, late):
    net, watch = Failing(), Watch(every=2, modules=["first"])
    net.late = late
    callbacks = [
        PenaltyCallback(IStar(), modules=["first"]),
        PenaltyCallback(CosReg(), modules=["first"]),
        WatchCallback(watch),
    ]
    with pytest.raises(KeyError):
        fitted(net, data, tmp_path, *callbacks)
    assert "training_step" not in vars(net) and "forward" not in vars(net)
    assert not net.first._forward_hooks
    stepping = SimpleNamespace(global_step=0)
    callbacks[0].setup(stepping, net, "fit")
    callbacks[0].setup(stepping, net, "fit")  # what is wrapped is not wrapped again
    callbacks[1].setup(stepping, net, "fit")
    net.log = lambda *_, **__: None
    before = [each.penalty.call for each in callbacks[:2]]
    net.training_step(next(iter(data)), 0)
    assert [each.penalty.call for each in callbacks[:2]] == [1 + each for each in before]
    callbacks[0].teardown(None, net, "fit")
    callbacks[1].teardown(None, net, "fit")
    assert "training_step" not in vars(net)


def test_a_training_step_of_ones_own_comes_back(data):
    net = Net()
    own = net.training_step = lambda batch, index: None
    callback = PenaltyCallback(IStar(), modules=["first"])
    callback.setup(None, net, "fit")
    assert net.training_step is not own
    callback.teardown(None, net, "fit")
    assert net.training_step is own


@pytest.mark.parametrize("parts", [1, 2])
def test_the_loss_that_is_judged_is_that_of_the_module(data, tmp_path, parts):
    """Without penalties, and not divided by the batches of a step."""
    watch, net = Watch(every=1, modules=["first"]), Net()
    loader = DataLoader(data.dataset, batch_size=4)
    fitted(
        net, loader, tmp_path, PenaltyCallback(IStar(9.0), modules=["first"]),
        WatchCallback(watch), accumulate_grad_batches=parts,
    )  # fmt: skip
    kept = [value for _, value in watch.history["loss"]]
    assert kept and all(any(abs(each - loss) < 1e-5 for loss in net.losses) for each in kept)


def test_schedules_count_steps_of_the_optimiser(data, tmp_path):
    steps = []
    penalty = IStar(schedule=lambda step: steps.append(step) or 1.0)
    loader = DataLoader(data.dataset, batch_size=4)  # six batches, of which one is skipped
    fitted(
        Net(), loader, tmp_path, PenaltyCallback(penalty, modules=["first"]),
        accumulate_grad_batches=3,
    )  # fmt: skip
    assert steps == [0, 0, 1, 1, 1]


def test_a_streamed_matrix_is_found_in_each_epoch(tiny, tmp_path):
    from transformers import AutoModel

    class Wrapped(LightningModule):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(tiny).train()

        def training_step(self, batch, index):
            return self.model(**batch).last_hidden_state.square().mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.0)

    ids = torch.randint(4, 20, (16, 6), generator=torch.manual_seed(0))
    rows = [{"input_ids": each, "attention_mask": torch.ones_like(each)} for each in ids]
    net, penalty, known = Wrapped(), IStar(towards="streamed"), IStar()
    fitted(net, DataLoader(rows, batch_size=8), tmp_path, PenaltyCallback(penalty))
    known.stream(net.model, DataLoader(rows, batch_size=8))
    torch.testing.assert_close(penalty.shrinkage, known.shrinkage)


def test_gradients_of_a_transformer_in_a_module_are_followed(tiny, tmp_path):
    from transformers import AutoModel

    class Classifier(Net):
        def __init__(self):
            super().__init__()
            self.first = AutoModel.from_pretrained(tiny)
            self.head = torch.nn.Linear(self.first.config.hidden_size, 2)

        def training_step(self, batch, index):
            ids, labels = batch
            states = self.first(input_ids=ids).last_hidden_state
            return torch.nn.functional.cross_entropy(self.head(states[:, 0]), labels)

        def on_before_optimizer_step(self, optimizer):
            pass

    ids = torch.randint(5, 60, (24, 10), generator=torch.manual_seed(3))
    loader = DataLoader(TensorDataset(ids, torch.arange(24) % 2), batch_size=6)
    logged = []
    watch = Watch(
        every=2,
        batch=False,
        tangents=Tangents(rank=2),
        log=lambda n, step: logged.append((step, n)),
    )
    fitted(Classifier(), loader, tmp_path, WatchCallback(watch))
    assert [step for step, _ in watch.history["anisotropy/tangent-energy/grad.0"]] == [4]
    assert (
        logged[-1][0] == 4 and "anisotropy/tangent-energy-ratio-random/grad.0" in logged[-1][1]
    )
