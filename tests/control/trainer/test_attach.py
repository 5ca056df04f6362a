"""Trainers of transformers and sentence-transformers: two lines, and the loss has it in it."""

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from torch.utils.data import SequentialSampler
from transformers import (
    AutoModelForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainingArguments,
)
from transformers.utils import logging as transformers_logging

from isoscope.control import CosReg, IStar, Watch, attach, penalised
from isoscope.errors import ConfigError, PenaltyError, UnknownNameError

SOURCE = Path(__file__).parents[3] / "src"


def rows(n=64):
    generator = torch.manual_seed(5)
    found = []
    for number in range(n):
        length = 5 + number % 4
        ids = torch.randint(4, 20, (length,), generator=generator).tolist()
        found.append({"input_ids": ids, "attention_mask": [1] * length, "labels": number % 2})
    return found


def padded(batch):
    longest = max(len(each["input_ids"]) for each in batch)
    fill = {"input_ids": 0, "attention_mask": 0}
    joined = {
        name: torch.tensor(
            [each[name] + [value] * (longest - len(each[name])) for each in batch]
        )
        for name, value in fill.items()
    }
    return {**joined, "labels": torch.tensor([each["labels"] for each in batch])}


@pytest.fixture
def trainer(tiny, tmp_path):
    def made(**given):
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(
            tiny, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
        )
        usual = {
            "output_dir": str(tmp_path / "out"),
            "max_steps": 4,
            "per_device_train_batch_size": 8,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": [],
            "use_cpu": True,
            "disable_tqdm": True,
            "learning_rate": 1e-3,
            "seed": 1,
        }
        args = TrainingArguments(**(usual | given))
        return Trainer(model, args, data_collator=padded, train_dataset=rows())

    return made


def logged(trainer, name):
    return [each[name] for each in trainer.state.log_history if name in each]


def test_the_loss_has_the_penalty_in_it_and_the_log_says_how_much(trainer):
    plain = trainer()
    plain.train()
    penalty = IStar(weight=3.0)
    found = attach(trainer(), penalty)
    found.train()
    first = logged(found, "penalty/IStar")[0]
    assert first == pytest.approx(3.0 * (1 - logged(found, "penalty/IStar/reading")[0]))
    assert logged(found, "loss")[0] == pytest.approx(logged(plain, "loss")[0] + first, abs=1e-4)
    assert penalty.call == 4
    assert logged(found, "penalty/IStar")[-1] < first


def test_weight_zero_trains_as_if_it_were_not_there(trainer):
    plain, found = trainer(), attach(trainer(), IStar(weight=0.0))
    plain.train(), found.train()
    for one, other in zip(plain.model.parameters(), found.model.parameters(), strict=True):
        assert torch.equal(one, other)


def nothing(output, labels, **_):
    return 0.0 * output.logits.sum()


@pytest.mark.parametrize(
    ("func", "counts"),
    [(None, False), (None, True), (nothing, False)],
    ids=["divided", "scaled by the model", "scaled by a function"],
)
def test_accumulated_batches_have_the_mean_of_their_penalties(trainer, func, counts):
    """Whether the trainer divides the loss by the number of batches or leaves that to it."""
    slopes = []
    for steps in (1, 2):
        made = trainer(gradient_accumulation_steps=steps, max_steps=1, max_grad_norm=0.0)
        made.train_dataset = rows(8) * 2  # two batches, and the same ones
        made._get_train_sampler = lambda *_: SequentialSampler(range(16))
        made.compute_loss_func, made.model_accepts_loss_kwargs = func, counts
        made.model.classifier.weight.data.zero_()  # the task pulls at nothing below it
        attach(made, IStar(weight=1.0, rows=None))
        kept = []
        made.model.bert.encoder.layer[0].output.dense.weight.register_hook(kept.append)
        made.train()
        assert len(kept) == steps
        slopes.append(sum(kept))
    assert torch.allclose(slopes[1], slopes[0], rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("counts", [False, True], ids=["divided", "summed"])
def test_a_penalty_is_accumulated_as_the_task_loss_is(tmp_path, counts):
    """Two batches of one step have the gradient of half their losses and penalties, summed."""
    config = GPT2Config(
        vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=32,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = GPT2LMHeadModel(config).train()
    data = [{"input_ids": each["input_ids"][:5]} for each in rows(16)]  # as many labels each

    def collated(batch):
        ids = torch.tensor([each["input_ids"] for each in batch])
        labels = ids.clone()
        labels[:, 0] = -100  # nothing comes before it, but a trainer may count it
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}

    expected, weight = 0.0, model.transformer.h[0].mlp.c_fc.weight
    for half in (data[:8], data[8:]):
        with penalised(model, IStar(weight=5.0, rows=None)) as penalty:
            loss = (model(**collated(half)).loss + penalty()) / 2
        expected += torch.autograd.grad(loss, weight)[0]
    args = TrainingArguments(
        output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=8,
        gradient_accumulation_steps=2, max_grad_norm=0.0, report_to=[], use_cpu=True,
        disable_tqdm=True, save_strategy="no",
    )  # fmt: skip
    made = Trainer(model, args, data_collator=collated, train_dataset=data)
    made._get_train_sampler = lambda *_: SequentialSampler(range(16))
    made.model_accepts_loss_kwargs = counts
    kept = []
    weight.register_hook(kept.append)
    attach(made, IStar(weight=5.0, rows=None)).train()
    torch.testing.assert_close(sum(kept), expected, rtol=1e-4, atol=1e-6)


def test_a_penalty_and_a_watch_warn_of_nothing(trainer, monkeypatch):
    """In this process; the page's lines in one of their own are a slow test."""
    said = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())
    made = trainer(max_steps=2, per_device_train_batch_size=4, dataloader_pin_memory=False)
    monkeypatch.setattr(transformers_logging.get_logger(), "handlers", [handler])
    monkeypatch.setattr(transformers_logging.get_logger(), "level", logging.WARNING)
    with warnings.catch_warnings():
        for kind in (UserWarning, FutureWarning):
            warnings.simplefilter("error", kind)
        attach(made, IStar(weight=-1.0))
        attach(made, Watch(every=1))
        made.train()
        transformers_logging.get_logger().warning("it is heard")
    assert said == ["it is heard"]


@pytest.mark.slow
def test_documented_use_warns_of_nothing(trainer, texts, tmp_path):
    """The two lines of the page, and a watch, in a process where warnings are errors.

    It imports control first, which must not load transformers.
    """
    model, folder = trainer().model, tmp_path / "model"
    model.save_pretrained(folder)
    code = f"""
import json, logging, sys
import isoscope.control
assert "transformers" not in sys.modules, "control loads transformers"
import torch
from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments
from transformers.utils import logging as transformers_logging
said = []
handler = logging.Handler(logging.WARNING)
handler.emit = lambda record: said.append(record.getMessage())
model = AutoModelForSequenceClassification.from_pretrained({str(folder)!r})
transformers_logging.add_handler(handler)
ids = [[5 + (3 * n + k) % 20 for k in range(6)] for n in range(16)]
data = [dict(input_ids=i, attention_mask=[1] * 6, labels=n % 2) for n, i in enumerate(ids)]
args = TrainingArguments(
    output_dir={str(tmp_path / "out")!r}, max_steps=2, per_device_train_batch_size=4,
    report_to=[], use_cpu=True, disable_tqdm=True, save_strategy="no", logging_steps=1,
    dataloader_pin_memory=False,
)
trainer = Trainer(model, args, train_dataset=data)

from isoscope.control import IStar, Watch, attach
attach(trainer, IStar(weight=-1.0))
attach(trainer, Watch(every=1))
trainer.train()
assert not said, said
"""
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-W", "error::FutureWarning", "-c", code],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_schedules_count_steps_of_the_optimiser(trainer):
    """Also where the last step of an epoch has fewer batches: eight are 3, 3 and 2."""
    steps = []
    penalty = IStar(weight=1.0, schedule=lambda step: steps.append(step) or 1.0)
    attach(trainer(gradient_accumulation_steps=3, max_steps=4), penalty).train()
    assert steps == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]


def test_evaluation_is_not_penalised(trainer):
    found = attach(trainer(), IStar(weight=100.0))
    found.eval_dataset = rows(16)
    assert found.evaluate()["eval_loss"] < 2.0
    assert found.predict(rows(16)).predictions.shape == (16, 2)


def test_several_penalties_add_up(trainer):
    found = attach(trainer(max_steps=1), IStar(weight=1.0), CosReg(weight=1.0))
    found.train()
    assert len(logged(found, "penalty/IStar")) == len(logged(found, "penalty/CosReg")) == 1


def test_the_matrix_is_saved_with_a_checkpoint_and_read_again(trainer, tmp_path):
    penalty = IStar(weight=1.0, towards="running")
    found = attach(trainer(save_strategy="steps", save_steps=2), penalty)
    found.train()
    folder = tmp_path / "out" / "checkpoint-2"
    kept = load_file(folder / "penalty-IStar-0.safetensors")
    assert kept["_extra_state"].tolist() == [2, 2]
    again = IStar(weight=1.0, towards="running")
    resumed = attach(trainer(save_strategy="no"), again)
    resumed.train(resume_from_checkpoint=str(folder))
    assert again.call == penalty.call == 4
    assert torch.allclose(again.shrinkage, penalty.shrinkage, atol=1e-5)


def test_gradient_checkpointing_and_bfloat16_are_no_trouble(trainer):
    found = attach(trainer(gradient_checkpointing=True, bf16=True, max_steps=2), IStar(1.0))
    found.train()
    assert all(torch.isfinite(p).all() for p in found.model.parameters())


def test_adapters_of_every_kind_are_penalised(trainer):
    """Those with a task say output_hidden_states=None, which the config yields to."""
    config = GPT2Config(vocab_size=20, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    kinds = {
        "SEQ_CLS": (trainer().model, "query", padded),
        "CAUSAL_LM": (GPT2LMHeadModel(config), "c_attn", lambda b: with_labels(padded(b))),
    }
    for kind, (model, target, collated) in kinds.items():
        made = trainer(max_steps=2)
        lora = LoraConfig(
            task_type=kind, r=2, target_modules=[target], fan_in_fan_out=kind == "CAUSAL_LM"
        )
        again = Trainer(
            get_peft_model(model, lora), made.args, data_collator=collated, train_dataset=rows()
        )
        penalty = IStar(1.0)
        attach(again, penalty).train()
        assert penalty.call == 2 and penalty.reading is not None


def with_labels(batch):
    return {**batch, "labels": batch["input_ids"]}


def test_a_model_copied_to_several_devices_is_refused(trainer):
    found = attach(trainer(), IStar(1.0))
    copied = torch.nn.DataParallel(found.model).train()
    with pytest.raises(ConfigError, match=r"got nn\.DataParallel"):
        found.compute_loss(copied, padded(rows(4)))


def test_sentence_transformers_hear_anchors_and_positives_as_one_cloud(tiny, texts, tmp_path):
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(str(tiny), device="cpu")
    data = Dataset.from_dict({"anchor": texts, "positive": [t[::-1] for t in texts]})
    args = SentenceTransformerTrainingArguments(
        output_dir=str(tmp_path), max_steps=3, per_device_train_batch_size=8, logging_steps=1,
        save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    penalty = IStar(weight=2.0)
    trainer = SentenceTransformerTrainer(
        model=model, args=args, train_dataset=data, loss=MultipleNegativesRankingLoss(model)
    )
    attach(trainer, penalty).train()
    assert penalty.call == 3
    assert len(logged(trainer, "penalty/IStar")) == 3


def test_attaching_one_object_twice_is_refused(trainer):
    penalty, watch = IStar(), Watch()
    found = attach(trainer(), penalty, watch)
    again = IStar()
    for target, things in ((found, [penalty]), (trainer(), [watch]), (found, [again, again])):
        with pytest.raises(ConfigError, match="cannot attach one") as caught:
            attach(target, *things)
        assert caught.value.slug == "attached-twice"
    attach(found, again)  # what was refused left nothing behind
    found.train()
    assert len(logged(found, "penalty/IStar")) == len(logged(found, "penalty/IStar-1")) == 4


def test_sites_that_are_not_there_are_refused_when_attached(trainer):
    with pytest.raises(UnknownNameError, match=r"no site is called 'resid\.9'") as caught:
        attach(trainer(), IStar(sites=["resid.0", "resid.9"]))
    assert "did you mean" in caught.value.hint
    with pytest.raises(PenaltyError, match="expected layers from 0 to 2, got 5"):
        attach(trainer(), IStar(layers=[0, 5]))


def test_what_is_no_trainer_or_no_penalty_is_refused(trainer):
    with pytest.raises(ConfigError, match="expected a trainer of transformers, got dict"):
        attach({}, IStar())
    with pytest.raises(ConfigError, match="expected a penalty or a watch") as caught:
        attach(trainer(), "istar")
    assert caught.value.slug == "trainer-kind"


def test_penalties_are_resumed_in_any_order(trainer, tmp_path):
    saving = trainer(save_strategy="steps", save_steps=2, max_steps=2)
    attach(saving, IStar(1.0, towards="running"), CosReg(1.0)).train()
    folder = tmp_path / "out" / "checkpoint-2"
    star = IStar(1.0, towards="running")
    again = attach(trainer(max_steps=3), CosReg(1.0), star)
    again.train(resume_from_checkpoint=str(folder))
    assert (star.call, star.averaged) == (3, 3)


def test_a_streamed_matrix_is_found_anew_in_each_epoch(trainer):
    penalty = IStar(1.0, towards="streamed")
    found = attach(trainer(max_steps=9, learning_rate=0.0), penalty)  # eight steps an epoch
    seen, stream = [], penalty.stream

    def streaming(*given, **named):
        seen.append(found.state.global_step)
        stream(*given, **named)

    penalty.stream = streaming
    found.train()
    by_hand = IStar(1.0)
    by_hand.stream(found.model, [padded(rows())])
    assert seen == [0, 8]
    assert torch.allclose(penalty.shrinkage, by_hand.shrinkage, rtol=1e-4, atol=1e-6)
