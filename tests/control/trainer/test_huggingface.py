"""Watch in a trainer: the numbers arrive in the history and in every tracker."""

import struct
import time

import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
)

from isoscope.control import Alert, CosReg, IStar, Tangents, Watch, attach
from isoscope.errors import ConfigError, UnknownNameError

NAME = "anisotropy/mean-cosine/resid.1"


@pytest.fixture
def trainer(tiny, texts, tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(tiny)

    def made(**given):
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(tiny)
        data = [{**tokenizer(text), "labels": n % 2} for n, text in enumerate(texts)]
        for row in data:
            row.pop("token_type_ids", None)
        usual = {
            "output_dir": str(tmp_path / "out"),
            "max_steps": 6,
            "per_device_train_batch_size": 4,
            "logging_steps": 2,
            "save_strategy": "no",
            "report_to": [],
            "use_cpu": True,
            "disable_tqdm": True,
        }
        args = TrainingArguments(**(usual | given))
        return Trainer(model, args, train_dataset=data, processing_class=tokenizer)

    return made


def series(trainer, name=NAME):
    return [(e["step"], e[name]) for e in trainer.state.log_history if name in e]


def test_sites_that_are_not_there_fail_when_attached(trainer):
    with pytest.raises(UnknownNameError, match="no site is called 'residd'"):
        attach(trainer(), Watch(sites=["residd"]))


def test_numbers_arrive_in_the_history_of_the_log(trainer, texts):
    watch = Watch(texts, every=3)
    found = attach(trainer(), watch)
    found.train()
    assert [step for step, _ in series(found)] == [0, 3, 6]
    assert [step for step, _ in series(found, f"{NAME}.batch")] == [3, 6]
    assert series(found) == [(s, pytest.approx(v)) for s, v in watch.history[NAME]]
    # Steps that both log have both: a log from a callback would cancel the trainer's own.
    assert [step for step, _ in series(found, "loss")] == [2, 4, 6]
    assert [step for step, _ in watch.history["loss"]] == [2, 4, 6]


def test_numbers_arrive_in_event_files(trainer, texts, tmp_path, monkeypatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "events"))
    found = attach(trainer(report_to=["tensorboard"]), Watch(texts, every=3))
    found.train()
    events = EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    (tag,) = [each for each in events.Tags()["scalars"] if each.endswith(NAME)]
    told = [(each.step, each.value) for each in events.Scalars(tag)]
    assert told == [(s, pytest.approx(v, rel=1e-6)) for s, v in series(found)]


def records_of(path):
    """Yield the records of a .wandb file: LevelDB's log format behind a header of its own."""
    content, at, parts = path.read_bytes(), 7, []
    while at + 7 <= len(content):
        left = 32768 - at % 32768
        if left < 7:  # the end of a block too small for a header
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", content[at : at + 7])
        parts.append(content[at + 7 : at + 7 + length])
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield b"".join(parts)
            parts = []


@pytest.mark.slow
def test_numbers_arrive_in_an_offline_run_of_wandb(trainer, texts, tmp_path, monkeypatch):
    import wandb
    from wandb.proto import wandb_internal_pb2

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    found = attach(trainer(report_to=["wandb"]), Watch(texts, every=3))
    found.train()
    wandb.finish()
    wandb.teardown()  # ends the process that writes, which may be behind on a busy machine
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    known = [value for _, value in series(found)]
    deadline = time.monotonic() + 60
    while len(told := _history(path, wandb_internal_pb2.Record)) < len(known):
        assert time.monotonic() < deadline, "the file of W&B has no such numbers"
        time.sleep(0.5)
    assert told == pytest.approx(known)


def _history(path, kind):
    told = []
    for content in records_of(path):
        record = kind()
        record.ParseFromString(content)
        for item in record.history.item:
            if (item.key or "/".join(item.nested_key)).endswith(NAME):
                told.append(float(item.value_json))
    return told


def test_numbers_arrive_in_trackio(trainer, texts, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    run = trackio.init(project="watched", name="one", embed=False)
    from isoscope.control.watch.logger import trackio as logger

    watch = Watch(texts, every=3, log=logger(run))
    attach(trainer(), watch).train()
    trackio.finish()
    rows = SQLiteStorage.get_logs("watched", "one")
    told = [(row["step"], row[NAME]) for row in rows if NAME in row]
    assert told == [(s, pytest.approx(v)) for s, v in watch.history[NAME]]


def test_numbers_arrive_in_mlflow(trainer, texts, tmp_path, monkeypatch):
    import mlflow

    from isoscope.control.watch.logger import mlflow as logger

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as run:
        watch = Watch(texts, every=3, log=logger())
        attach(trainer(), watch).train()
    told = mlflow.MlflowClient().get_metric_history(run.info.run_id, NAME)
    assert [(e.step, e.value) for e in told] == [
        (s, pytest.approx(v)) for s, v in watch.history[NAME]
    ]


def test_an_alarm_stops_the_trainer(trainer, texts):
    class Third:
        name = "third"

        def __call__(self, history):
            seen = history.get(NAME, [])
            return [Alert("third", seen[-1][0], NAME, 0.0, 0.0)] if len(seen) > 1 else []

    found = attach(trainer(), Watch(texts, every=2, rules=[Third()], on_alert="stop"))
    with pytest.warns(UserWarning, match="third at step 2"):
        found.train()
    assert found.state.global_step == 2


def test_a_resumed_run_has_one_history(trainer, texts, tmp_path):
    watch = Watch(texts, every=2)
    attach(trainer(save_strategy="steps", save_steps=4), watch).train()
    again = Watch(texts, every=2)
    resumed = attach(trainer(), again)
    resumed.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    assert [step for step, _ in again.history[NAME]] == [0, 2, 4, 6]
    assert again.history[NAME][:3] == watch.history[NAME][:3]
    assert (tmp_path / "out" / "checkpoint-4" / "watch-0.safetensors").exists()


def test_accumulated_batches_are_read_once_a_step(trainer):
    found = attach(
        trainer(gradient_accumulation_steps=2, max_steps=2), Watch(every=1, batch=True)
    )
    found.train()
    assert [step for step, _ in series(found, f"{NAME}.batch")] == [1, 2]


def left_behind(model):
    """Return what of ours is still on a model; transformers leaves hooks of its own."""
    parts = list(model.bert.modules())
    hooks = [h for m in parts for h in (m._forward_hooks | m._forward_pre_hooks).values()]
    ours = [each for each in hooks if each.__module__.startswith("isoscope")]
    return ours + [m for m in parts if "forward" in vars(m)]


@pytest.mark.parametrize("when", ["before the pass", "after it"])
def test_an_exception_leaves_nothing_behind(trainer, texts, when):
    found = trainer()
    compute_loss, seen = found.compute_loss, []

    def failing(*given, **named):
        seen.append(1)
        if len(seen) == 2 and when == "before the pass":
            raise KeyError(when)
        loss = compute_loss(*given, **named)
        if len(seen) == 2:
            raise KeyError(when)
        return loss

    found.compute_loss = failing
    attach(found, Watch(texts, every=2), IStar(1.0))
    with pytest.raises(KeyError, match=when):
        found.train()
    assert not left_behind(found.model)


def test_each_model_of_a_trainer_is_read(trainer, texts):
    models, first = [], trainer()

    def init():
        torch.manual_seed(len(models))
        model = AutoModelForSequenceClassification.from_pretrained(
            first.model.config.name_or_path
        )
        with torch.no_grad():
            model.bert.embeddings.word_embeddings.weight.normal_()
        models.append(model)
        return model

    found = Trainer(
        None, first.args, train_dataset=first.train_dataset, model_init=init,
        processing_class=first.processing_class,
    )  # fmt: skip
    watch = Watch(texts, every=6, batch=False)
    attach(found, watch)
    found.train(), found.train()
    read = [value for _, value in watch.history[NAME]]
    assert len(read) == 4 and len(set(read)) == 4
    alone = Watch(texts, batch=False, tokenizer=first.processing_class)
    alone.read(models[-1], 0)
    assert alone.history[NAME][0][1] == read[-1]


def test_the_loss_that_is_judged_is_without_penalties(trainer, texts):
    """A loss at ln 2 stays there, whatever a penalty adds."""
    for penalties in ((), (IStar(5.0), CosReg(-3.0))):
        watch = Watch(texts[:8], every=1, chance=2, on_alert=lambda alert: None)
        made = trainer(max_steps=16, logging_steps=1, learning_rate=0.0)
        torch.nn.init.zeros_(made.model.classifier.weight)
        attach(made, watch, *penalties).train()
        assert [each.rule for each in watch.alerts] == ["loss-at-chance"]
        assert [v for _, v in watch.history["loss"]] == pytest.approx([0.6931] * 16, abs=2e-4)


def test_a_model_copied_to_several_devices_is_refused(trainer):
    found = attach(trainer(), Watch(every=1))
    found.model_wrapped = torch.nn.DataParallel(found.model)
    with pytest.raises(ConfigError, match=r"got nn\.DataParallel"):
        found.callback_handler.on_train_begin(found.args, found.state, found.control)


def test_gradients_are_followed_over_steps_in_the_log_and_in_a_run_that_is_resumed(
    trainer, tmp_path
):
    name = "anisotropy/tangent-energy/grad.1"
    whole = attach(
        trainer(save_steps=4, save_strategy="steps"),
        Watch(every=2, batch=False, tangents=Tangents(rank=3)),
    )
    whole.train()
    assert [step for step, _ in series(whole, name)] == [4, 6]
    assert all(0 < value < 1 for _, value in series(whole, name))
    assert [step for step, _ in series(whole, "anisotropy/tangent-match/grad.1")] == [4, 6]
    resumed = attach(
        trainer(save_strategy="no"), Watch(every=2, batch=False, tangents=Tangents(rank=3))
    )
    resumed.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))
    # the proxy of step 4 came with the checkpoint: without it, step 6 would only fit one
    assert series(resumed, name) == [
        (s, pytest.approx(v, rel=1e-3)) for s, v in series(whole, name)
    ]


def test_a_rank_beyond_the_width_fails_when_attached(trainer):
    with pytest.raises(ConfigError, match="expected a rank of at most"):
        attach(trainer(), Watch(tangents=Tangents(rank=500)))
