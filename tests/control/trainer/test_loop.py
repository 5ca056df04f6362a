"""A penalty in a plain loop: what it hears is what the model says, and nothing stays behind."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import (
    AutoModelForSequenceClassification,
    BartConfig,
    BartForSequenceClassification,
    OPTConfig,
    OPTForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from isoscope.control import CosReg, DebiasedIsotropy, IStar, penalised
from isoscope.control.listening import find_transformer, token_argument, trains
from isoscope.errors import ConfigError, PenaltyError, UnknownNameError


@pytest.fixture
def model(tiny):
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_pretrained(tiny).train()


@pytest.fixture
def batch():
    generator = torch.manual_seed(1)
    mask = torch.ones(6, 9, dtype=torch.long)
    mask[0, 4:] = 0
    ids = torch.randint(4, 20, (6, 9), generator=generator)
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.arange(6) % 2}


def asked(model, batch, penalty):
    """Return the penalty as it is without a block: hidden states asked for by hand."""
    torch.manual_seed(3)
    output = model(**batch, output_hidden_states=True)
    return penalty(output, batch["attention_mask"])


@pytest.mark.parametrize("kind", [IStar, DebiasedIsotropy, CosReg])
def test_it_is_the_penalty_of_the_hidden_states(model, batch, kind):
    with penalised(model, kind(2.0)) as penalty:
        torch.manual_seed(3)
        model(**batch)
        found = penalty()
    known = asked(model, batch, kind(2.0))
    assert found.item() == known.item()
    one, other = (
        torch.autograd.grad(each, model.bert.encoder.layer[0].attention.self.query.weight)[0]
        for each in (found, known)
    )
    assert torch.equal(one, other)


def test_the_model_is_left_as_it_was(model, batch):
    with penalised(model, IStar()) as penalty:
        model(**batch)
        penalty()
    assert not model.config.output_hidden_states
    assert model(**batch).hidden_states is None
    assert "forward" not in vars(model.bert)


def test_it_lets_go_after_an_error_too(model):
    with pytest.raises(KeyError), penalised(model, IStar()):
        raise KeyError
    assert "forward" not in vars(model.bert) and not model.config.output_hidden_states


def test_several_passes_are_one_cloud(tiny, batch):
    model = AutoModelForSequenceClassification.from_pretrained(
        tiny, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    ).train()
    short = {
        name: value[:4, :6] if value.ndim > 1 else value[:4] for name, value in batch.items()
    }
    with penalised(model, IStar(rows=None)) as penalty:
        model(**batch)
        model(**short)
        found = penalty()
    rows = [[], [], []]
    for each in (batch, short):
        states = model(**each, output_hidden_states=True).hidden_states[1:]
        for kept, layer in zip(rows, states, strict=True):
            kept.append(layer[each["attention_mask"].bool()])
    known = IStar(rows=None)([torch.cat(kept) for kept in rows])
    assert found.item() == pytest.approx(known.item(), rel=1e-6)


def test_sequences_of_several_passes_stay_apart(model, batch):
    penalty = DebiasedIsotropy(rows=None)
    with penalised(model, penalty) as extra:
        model(**batch)
        model(**batch)
        assert extra().item() != 0
    assert penalty.reading is not None


def test_passes_that_do_not_train_are_not_captured(model, batch):
    with penalised(model, IStar()) as penalty:
        with torch.no_grad():
            model(**batch)
        with pytest.raises(PenaltyError, match="expected a training pass") as caught:
            penalty()
        assert caught.value.slug == "nothing-heard"
        model.eval()
        model(**batch)
        with pytest.raises(PenaltyError):
            penalty()


def test_gradient_checkpointing_hears_each_pass_once(model, batch):
    model.gradient_checkpointing_enable()
    penalty = IStar()
    with penalised(model, penalty) as extra:
        for _ in range(2):
            loss = model(**batch).loss + extra()
            loss.backward()
    assert penalty.call == 2
    assert model.bert.encoder.layer[0].output.dense.weight.grad.abs().sum() > 0


def test_adapters_are_looked_through(model, batch):
    wrapped = get_peft_model(model, LoraConfig(target_modules=["query"]))
    assert find_transformer(wrapped) is model.bert
    with penalised(wrapped, IStar(10.0)) as penalty:
        wrapped(**batch)
        penalty().backward()
    moved = [p for n, p in wrapped.named_parameters() if "lora_B" in n]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in moved)


def test_modules_of_any_network_are_captured_by_name():
    net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8))
    rows = torch.randn(12, 4, 5, generator=torch.manual_seed(0))
    mask = torch.ones(12, 4)
    mask[:, 3] = 0
    with penalised(net, IStar(1.0), modules=["1", "2"]) as penalty:
        net(rows)
        found = penalty(mask)
    known = IStar(1.0)([net[1](net[0](rows)), net(rows)], mask)
    assert found.item() == pytest.approx(known.item(), rel=1e-6)
    assert not net[1]._forward_hooks


def test_a_mask_given_by_place_is_found(model, batch):
    with penalised(model, IStar()) as penalty:
        torch.manual_seed(3)
        model.bert(batch["input_ids"], batch["attention_mask"])
        found = penalty()
    assert found.item() == asked(model, batch, IStar()).item()
    assert token_argument(model.bert, (), {}, "attention_mask") is None
    assert token_argument(nn.Identity(), (1, 2, 3), {}, "attention_mask") is None
    assert (
        token_argument(
            model.bert, (), {"attention_mask": torch.ones(2, 1, 3, 3)}, "attention_mask"
        )
        is None
    )


def test_what_cannot_be_captured_is_reported(model):
    with pytest.raises(ConfigError, match="expected a model of transformers") as caught:
        penalised(nn.Linear(2, 2), IStar())
    assert caught.value.slug == "no-transformer"
    with pytest.raises(UnknownNameError, match="no module is called 'bertt'"):
        penalised(model, IStar(), modules=["bertt"])


def test_modules_that_run_unequally_often_are_reported():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, rows):
            return self.b(self.a(self.a(rows)))

    net = Twice()
    with penalised(net, IStar(), modules=["a", "b"]) as penalty:
        net(torch.randn(3, 4))
        with pytest.raises(PenaltyError, match="a: 2, b: 1"):
            penalty()


def test_training_is_a_mode_and_needs_gradients():
    net = nn.Linear(2, 2)
    assert trains(net)
    with torch.no_grad():
        assert not trains(net)
    assert not trains(net.eval())


def test_a_model_saved_within_the_block_does_not_keep_the_asking(model, batch, tmp_path):
    with penalised(model, IStar()) as penalty:
        model(**batch)
        penalty()
        model.save_pretrained(tmp_path)
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert not again.config.output_hidden_states


@pytest.mark.parametrize("kind", ["SEQ_CLS", None])
def test_adapters_that_say_they_want_no_hidden_states_are_captured(model, batch, kind):
    wrapped = get_peft_model(model, LoraConfig(task_type=kind, target_modules=["query"]))
    with penalised(wrapped, IStar(10.0)) as penalty:
        wrapped(**batch)
        assert penalty().item() > 0


def test_a_head_that_passes_the_body_by_is_captured_with_its_mask(batch):
    """OPT's head calls the decoder of its body."""
    torch.manual_seed(0)
    config = OPTConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=32,
        word_embed_proj_dim=16, max_position_embeddings=32, dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    model = OPTForCausalLM(config).train()
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with penalised(model, IStar(rows=None, sites="published")) as penalty:
        model(input_ids=ids, attention_mask=mask)
        found = penalty().item()
    states = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    real = [layer[mask.bool()] for layer in states[1:]]
    assert found == pytest.approx(IStar(rows=None)(real).item(), rel=1e-6)
    assert "forward" not in vars(model.model.decoder)


def two_stacks():
    small = {"vocab_size": 40, "d_model": 16, "decoder_start_token_id": 0}
    sizes = {
        f"{side}_{part}": 2 if part != "ffn_dim" else 32
        for side in ("encoder", "decoder")
        for part in ("layers", "attention_heads", "ffn_dim")
    }
    torch.manual_seed(0)
    t5 = T5Config(d_kv=8, d_ff=32, num_layers=2, num_heads=2, **small)
    bart = BartConfig(max_position_embeddings=32, **sizes, **small)
    return [T5ForConditionalGeneration(t5), BartForSequenceClassification(bart)]


@pytest.mark.parametrize("number", [0, 1])
def test_of_two_stacks_one_has_to_be_chosen(batch, number):
    model = two_stacks()[number].train()
    with pytest.raises(ConfigError, match="got the encoder and the decoder of") as caught:
        penalised(model, IStar())
    assert caught.value.slug == "two-stacks"
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with penalised(model.get_encoder(), IStar()) as penalty:  # as the hint says
        ids[:, -1] = model.config.eos_token_id  # what the head of Bart looks for
        model(input_ids=ids, attention_mask=mask, decoder_input_ids=ids)
        assert penalty().item() > 0


def test_a_model_that_is_copied_in_every_pass_is_refused(model):
    for modules in (None, ["module.bert"]):
        with pytest.raises(ConfigError, match=r"got nn\.DataParallel") as caught:
            penalised(nn.DataParallel(model), IStar(), modules)
        assert caught.value.slug == "data-parallel"


@pytest.mark.parametrize("modules", [None, ["bert.encoder.layer.0", "bert.encoder.layer.1"]])
def test_a_penalty_on_some_steps_only_hears_those_steps(model, batch, modules):
    kept = IStar(rows=None)
    with penalised(model, kept, modules) as penalty:
        for step in range(4):
            torch.manual_seed(step)
            loss = model(**batch).loss
            if step % 2:
                loss = loss + penalty()
            loss.backward()
    alone = IStar(rows=None)
    with penalised(model, alone, modules) as penalty:
        torch.manual_seed(3)
        model(**batch)
        penalty()
    assert kept.call == 2 and kept.reading == pytest.approx(alone.reading, abs=1e-6)


def test_a_penalty_may_have_a_backward_pass_of_its_own(model, batch):
    with penalised(model, IStar()) as penalty:
        model(**batch).loss.backward(retain_graph=True)
        penalty().backward()
        model(**batch)
        penalty.forget()
        with pytest.raises(PenaltyError):
            penalty()
