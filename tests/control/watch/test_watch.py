"""Watch: right numbers, hooks for one step only, training untouched, alarms, resuming."""

import os

import pytest
import torch
from torch import distributed, nn
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    OPTConfig,
    OPTForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from forks import Fork
from isoscope.api import measure
from isoscope.control import Alert, IStar, RankFalling, Watch
from isoscope.control.listening import evaluating
from isoscope.control.watch.watch import MEASURES
from isoscope.errors import ConfigError, UnknownNameError


@pytest.fixture
def model(tiny):
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_pretrained(tiny).train()


@pytest.fixture
def tokenizer(tiny):
    return AutoTokenizer.from_pretrained(tiny)


@pytest.fixture
def batch(tokenizer, texts):
    made = dict(tokenizer(texts[:12], padding=True, return_tensors="pt"))
    made.pop("token_type_ids", None)
    return {**made, "labels": torch.arange(12) % 2}


def hooks(model):
    return sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) + ("forward" in vars(m))
        for m in model.modules()
    )


def trained(model, batch, steps=6, watch=None):
    torch.manual_seed(7)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(1, steps + 1):
        if watch is not None:
            watch.begin(model, step)
        loss = model(**batch).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if watch is not None and watch.end(model, step, loss.detach()):
            return step
    return None


def test_the_batch_is_read_in_the_step_that_is_due(model, batch):
    said = []
    watch = Watch(every=3, log=lambda numbers, step: said.append((step, numbers)))
    trained(model, batch, 6, watch)
    assert [step for step, _ in said] == [3, 6]
    names = {f"anisotropy/{m}/resid.{i}.batch" for m in MEASURES for i in range(3)}
    assert set(said[0][1]) == names
    assert [step for step, _ in watch.history["loss"]] == [1, 2, 3, 4, 5, 6]


def test_hooks_are_there_in_that_step_only(model, batch, tokenizer, texts):
    watch = Watch(texts, every=2, tokenizer=tokenizer)
    before = hooks(model)
    for step in (1, 2, 3):
        watch.begin(model, step)
        assert (hooks(model) > before) is (step == 2)
        loss = model(**batch).loss
        assert hooks(model) == before  # the pass is over
        loss.backward()
        watch.end(model, step)
        assert hooks(model) == before


def test_training_is_not_changed_by_being_watched(tiny, batch, tokenizer, texts):
    weights = []
    for watched in (False, True):
        torch.manual_seed(0)
        model = AutoModelForSequenceClassification.from_pretrained(tiny).train()
        watch = Watch(texts, every=1, tokenizer=tokenizer) if watched else None
        trained(model, batch, 4, watch)
        assert model.training and model.bert.encoder.layer[0].attention.self.training
        weights.append([p.detach().clone() for p in model.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))


def test_padding_does_not_count(model, batch):
    padded = {
        name: torch.cat([value, torch.zeros(12, 5, dtype=torch.long)], dim=1)
        if value.ndim == 2
        else value
        for name, value in batch.items()
    }
    model.eval()
    numbers = []
    for each in (batch, padded):
        watch = Watch(every=1)
        watch.begin(model, 1)
        with torch.no_grad():
            model(**each)
        watch.end(model, 1)
        numbers.append({k: v[0][1] for k, v in watch.history.items()})
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=1e-6)


def test_a_planted_collapse_is_reported_and_stops_training(model, batch, tokenizer, texts):
    watch = Watch(
        texts, every=2, tokenizer=tokenizer, on_alert="stop", rules=[RankFalling(share=0.8)]
    )
    watch.read(model, 0)
    penalty = IStar(weight=-50.0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    stopped = None
    with pytest.warns(UserWarning, match="rank-falling at step"):
        for step in range(1, 81):
            watch.begin(model, step)
            output = model(**batch, output_hidden_states=True)
            optimiser.zero_grad()
            penalty(output, batch["attention_mask"]).backward()
            optimiser.step()
            if watch.end(model, step):
                stopped = step
                break
    assert stopped is not None
    assert watch.alerts[0].rule == "rank-falling"


def test_an_alert_is_reported_once_and_calls_back(model, batch):
    class Always:
        name = "always"

        def __call__(self, history):
            return [Alert("always", 1, "loss", 1.0, 0.0)]

    called, said = [], []
    watch = Watch(
        every=1, rules=[Always()], on_alert=called.append,
        log=lambda numbers, step: said.append(numbers),
    )  # fmt: skip
    assert trained(model, batch, 3, watch) is None
    assert len(called) == 1 and watch.alerts == called
    assert [each.get("anisotropy/alert/always") for each in said] == [1.0, None, None]
    stopping = Watch(every=1, rules=[Always()], on_alert=lambda alert: True)
    assert trained(model, batch, 3, stopping) == 1


def test_a_history_that_is_resumed_is_judged_as_one(model, batch, tokenizer, texts):
    first = Watch(texts, every=1, tokenizer=tokenizer)
    first.alerts.append(Alert("rank-falling", 3, "anisotropy/effective-rank/x", 0.1, 0.25))
    trained(model, batch, 3, first)
    again = Watch(texts, every=1, tokenizer=tokenizer)
    again.load_state_dict(first.state_dict())
    assert again.history == first.history and again.alerts == first.alerts
    empty = Watch(every=1)
    empty.load_state_dict(Watch(every=1).state_dict())
    assert empty.history == {} and empty.alerts == []


def test_any_module_is_watched_by_the_names_of_its_parts():
    net = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
    watch = Watch(every=1, modules=["1", "2"])
    rows = torch.randn(30, 4, generator=torch.manual_seed(0))
    watch.begin(net, 1)
    net(rows)
    watch.end(net, 1)
    ((_, value),) = watch.history["anisotropy/mean-cosine/1.batch"]
    with torch.no_grad():
        known = measure(net[1](net[0](rows)).numpy(), measures=["mean-cosine"])[0].value
    assert value == pytest.approx(known, rel=1e-5)


@pytest.mark.parametrize(
    ("given", "error", "slug"),
    [
        ({"every": 0}, ConfigError, "watch-settings"),
        ({"batch": False}, ConfigError, "watch-settings"),
        ({"on_alert": "shout"}, ConfigError, "watch-settings"),
        ({"measures": ["twoon"]}, UnknownNameError, "unknown-watched-measure"),
        ({"pooling": "average"}, UnknownNameError, "unknown-pooling"),
        ({"probes": []}, ConfigError, "watch-probes"),
        ({"probes": "one text"}, ConfigError, "watch-probes"),
        ({"probes": {"input_ids": torch.ones(2, 3)}}, ConfigError, "watch-probes"),
    ],
)
def test_settings_that_make_no_sense_are_reported(given, error, slug):
    with pytest.raises(error) as caught:
        Watch(**given)
    assert caught.value.slug == slug


def test_sites_and_modules_that_are_not_there_are_reported(model):
    with pytest.raises(UnknownNameError, match="no site is called 'residd'"):
        Watch(every=1, sites=["residd"]).begin(model, 1)
    with pytest.raises(UnknownNameError, match="no module is called 'x'"):
        Watch(every=1, modules=["x"]).begin(model, 1)
    with pytest.raises(ConfigError, match="expected a model of transformers"):
        Watch(every=1).begin(nn.Linear(2, 2), 1)


def test_its_repr_says_what_it_watches_and_how_far_it_is(model, batch, tokenizer, texts):
    watch = Watch(texts[:9], every=2, tokenizer=tokenizer, measures=["mean-cosine"])
    assert repr(watch) == (
        "Watch(9 probes and the batch, every=2, sites=resid, measures=mean-cosine; "
        "0 readings, 0 alerts)"
    )
    trained(model, batch, 5, watch)
    assert repr(watch).endswith("; 2 readings, the last at step 4, 0 alerts)")
    assert repr(Watch(modules=["0", "1"])).startswith(
        "Watch(no probes and the batch, every=100"
    )


def test_every_part_of_a_model_comes_back_into_its_mode(model):
    model.bert.encoder.layer[1].eval()
    with evaluating(model):
        assert not any(module.training for module in model.modules())
    assert model.training and not model.bert.encoder.layer[1].training


TEXTS = [f"the river carries {'boats ' * (n % 5)} the captain" for n in range(20)]


def watch_as_one_of_two(rank, folder, place):
    """Watch one step as one of two processes, and write what was read."""
    store = f"file://{place}/store"
    distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    watch = Watch(TEXTS, every=1, tokenizer=tokenizer, batch=True)
    watch.begin(model, 1)
    if rank == 0:  # the other one has no batch at all
        model(**tokenizer(TEXTS[:4], padding=True, return_tensors="pt"))
    watch.end(model, 1, float(rank))  # a loss of its own in each
    said = sorted((k, round(v[0][1], 6)) for k, v in watch.history.items())
    (place / f"said-{rank}").write_text(f"{said}\n")
    os._exit(0)  # freeing a process group may wait for ever, see test_processes.py


def test_two_processes_read_what_one_reads(tiny, tmp_path, tokenizer):
    running = [Fork(watch_as_one_of_two, rank, tiny, tmp_path) for rank in (0, 1)]
    try:
        assert [each.wait(200) for each in running] == [0, 0]
    finally:
        for each in running:
            each.kill()
    said = [(tmp_path / f"said-{rank}").read_text() for rank in (0, 1)]
    assert said[0] == said[1] != ""
    found = dict(eval(said[0]))
    alone = Watch(TEXTS, every=1, tokenizer=tokenizer)
    model = AutoModel.from_pretrained(tiny)
    alone.begin(model, 1)
    model(**tokenizer(TEXTS[:4], padding=True, return_tensors="pt"))
    alone.end(model, 1)
    assert found.pop("loss") == 0.5
    assert len(found) == 24
    known = {name: alone.history[name][0][1] for name in found}
    assert found == pytest.approx(known, rel=1e-4, abs=2e-6)


@pytest.mark.parametrize("value", [float("nan"), 1e30])
def test_numbers_that_are_lost_are_reported_once_and_marked_in_the_log(value):
    net, said = nn.Sequential(nn.Linear(4, 6), nn.Tanh()), []
    with torch.no_grad():
        net[0].weight.fill_(value)
    log = lambda numbers, step: said.append(numbers)  # noqa: E731
    watch = Watch(every=1, modules=["0"], measures=["effective-rank"], log=log)
    rows = torch.randn(30, 4, generator=torch.manual_seed(0))
    with pytest.warns(UserWarning, match=r"0\.batch is NaN or infinite") as told:
        for step in (1, 2):
            watch.begin(net, step)
            net(rows)
            watch.end(net, step)
    assert len(told) == 1
    assert said == [{"anisotropy/lost/0.batch": 1.0}] * 2
    assert watch.history == {}


def test_a_pass_that_raises_leaves_nothing_behind(model, batch):
    watch, before = Watch(every=1), hooks(model)
    watch.begin(model, 1)
    with pytest.raises(IndexError):
        model(input_ids=batch["input_ids"] + 10**6)
    assert hooks(model) == before


def test_another_model_is_read_where_its_own_sites_are(tiny, batch, tokenizer, texts):
    watch, alone = (Watch(texts, every=1, tokenizer=tokenizer, batch=False) for _ in range(2))
    models = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        models.append(AutoModelForSequenceClassification.from_pretrained(tiny).train())
    with torch.no_grad():
        models[1].bert.embeddings.word_embeddings.weight.normal_()
    watch.read(models[0], 0)
    watch.read(models[1], 1)
    alone.read(models[1], 1)
    for name, series in alone.history.items():
        assert watch.history[name][1] == series[0]


def test_a_head_that_passes_the_body_by_does_not_bring_padding_in():
    """OPT's head calls the decoder of its body."""
    torch.manual_seed(0)
    config = OPTConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, ffn_dim=32,
        word_embed_proj_dim=16, max_position_embeddings=32, dropout=0.0, attention_dropout=0.0,
    )  # fmt: skip
    model = OPTForCausalLM(config).train()
    ids = torch.randint(4, 40, (6, 8))
    mask = torch.ones_like(ids)
    mask[:, 5:] = 0
    numbers = []
    for width in (8, 5):
        watch = Watch(every=1, measures=["mean-cosine"])
        watch.begin(model, 1)
        model(input_ids=ids[:, :width], attention_mask=mask[:, :width])
        watch.end(model, 1)
        numbers.append({name: series[0][1] for name, series in watch.history.items()})
    assert len(numbers[0]) == 2 and numbers[0] == pytest.approx(numbers[1], abs=1e-5)


def test_blocks_that_run_without_the_model_are_not_counted(model, batch):
    watch = Watch(every=1)
    watch.begin(model, 1)
    with pytest.warns(UserWarning, match="name modules= instead"):
        model.bert.encoder(model.bert.embeddings(batch["input_ids"]))
    watch.end(model, 1)
    assert watch.history == {}


def test_of_two_stacks_one_has_to_be_chosen():
    config = T5Config(
        vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = T5ForConditionalGeneration(config).train()
    watch, ids = Watch(every=1), torch.randint(4, 40, (6, 8))
    with pytest.raises(ConfigError, match="got the encoder and the decoder of T5For"):
        watch.begin(model, 1)
    watch.begin(model.get_encoder(), 1)  # as the hint says
    model(input_ids=ids, labels=ids)
    watch.end(model.get_encoder(), 1)
    assert "anisotropy/mean-cosine/resid.1.batch" in watch.history


def test_a_model_that_is_copied_in_every_pass_is_refused(model):
    with pytest.raises(ConfigError, match=r"got nn\.DataParallel"):
        Watch(every=1).begin(nn.DataParallel(model), 1)
