"""Watch in a trainer: the numbers arrive in the history and in every tracker."""

import struct

import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
)

from isoscope.control import Alert, Watch, attach

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


def test_numbers_arrive_in_an_offline_run_of_wandb(trainer, texts, tmp_path, monkeypatch):
    import wandb
    from wandb.proto import wandb_internal_pb2

    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SILENT", "true")
    found = attach(trainer(report_to=["wandb"]), Watch(texts, every=3))
    found.train()
    wandb.finish()
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    told = []
    for content in records_of(path):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(content)
        for item in record.history.item:
            if (item.key or "/".join(item.nested_key)).endswith(NAME):
                told.append(float(item.value_json))
    assert told == pytest.approx([value for _, value in series(found)])


def test_numbers_arrive_in_trackio(trainer, texts, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    run = trackio.init(project="watched", name="one", embed=False)
    from isoscope.control.logger import trackio as logger

    watch = Watch(texts, every=3, log=logger(run))
    attach(trainer(), watch).train()
    trackio.finish()
    rows = SQLiteStorage.get_logs("watched", "one")
    told = [(row["step"], row[NAME]) for row in rows if NAME in row]
    assert told == [(s, pytest.approx(v)) for s, v in watch.history[NAME]]


def test_numbers_arrive_in_mlflow(trainer, texts, tmp_path, monkeypatch):
    import mlflow

    from isoscope.control.logger import mlflow as logger

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
