"""The nursery model: gpt_neox by default, and what each switch changes."""

import json
import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.models.gpt_neox import GPTNeoXConfig, GPTNeoXForCausalLM

from isoscope.lab.nursery.config import NurseryConfig
from isoscope.lab.nursery.model import NurseryLM, shift
from isoscope.study.model import load_model

SMALL = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
}
POST = {"norm_place": "post", "parallel_residual": False}
SWITCHES = [
    {},
    {"parallel_residual": False},
    POST,
    {"norm_kind": "rms"},
    {"final_norm_bias": False},
    {**POST, "norm_kind": "rms", "final_norm_bias": False},
    {"mixer": "convolution"},
    {"objective": "masked"},
    {"objective": "masked", "mixer": "convolution"},
    {"tie_word_embeddings": True},
]


def model_of(**switches):
    torch.manual_seed(0)
    made = NurseryLM(NurseryConfig(**SMALL, **switches)).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight += 0.3 * torch.randn_like(weight)
    return made


def tokens(batch=2, length=9):
    return torch.randint(0, 40, (batch, length), generator=torch.manual_seed(1))


def inner(model):
    named = model.named_parameters()
    return sum(p.numel() for n, p in named if "embed_in" not in n and "lm_head" not in n)


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("padded", [0, 3])
def test_it_gives_the_logits_of_gpt_neox_from_its_weights(parallel, padded):
    config = GPTNeoXConfig(**SMALL, intermediate_size=64, use_parallel_residual=parallel)
    torch.manual_seed(0)
    theirs = GPTNeoXForCausalLM(config).eval()
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.normal_(std=0.5)
    ours = model_of(parallel_residual=parallel)
    weights = {
        name.replace("gpt_neox.", "nursery."): each
        for name, each in theirs.state_dict().items()
    }
    ours.load_state_dict(weights, strict=True)
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 9 - padded :] = 0
    with torch.no_grad():
        wanted = theirs(tokens(), attention_mask=mask).logits
        found = ours(tokens(), attention_mask=mask).logits
    real = mask.bool()
    assert wanted[real].abs().max() > 1
    assert torch.allclose(found[real], wanted[real], rtol=0, atol=1e-5)


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_a_position_sees_what_its_objective_lets_it_see(switches):
    model = model_of(**switches)
    ids = tokens(1)
    other = ids.clone()
    other[0, 5] = (ids[0, 5] + 1) % 40
    with torch.no_grad():
        moved = (model(ids).logits - model(other).logits).abs().amax(dim=-1)[0]
    before = moved[:5].max()
    assert (before > 1e-4) == (switches.get("objective") == "masked")
    assert moved[5:8].min() > 1e-4  # and later ones see it


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_padding_does_not_reach_real_tokens(switches):
    model = model_of(**switches)
    ids = tokens(1)
    longer = torch.cat([ids, tokens(1, 4)], dim=1)
    mask = torch.ones_like(longer)
    mask[:, 9:] = 0
    with torch.no_grad():
        alone = model(ids, attention_mask=torch.ones_like(ids)).logits
        padded = model(longer, attention_mask=mask).logits[:, :9]
    assert torch.allclose(alone, padded, rtol=0, atol=1e-5)


def test_switches_leave_the_number_of_parameters_alone():
    base = inner(model_of(parallel_residual=False))
    assert inner(model_of(**POST)) == base
    assert inner(model_of(parallel_residual=False, mixer="convolution")) == base
    assert inner(model_of(tie_word_embeddings=True)) == base
    assert base - inner(model_of(final_norm_bias=False)) == 16
    assert base - inner(model_of(norm_kind="rms")) == 4 * 16  # one bias in each but the last


def test_switches_that_do_not_go_together_are_refused():
    with pytest.raises(Exception, match="cannot put norms after a parallel residual"):
        NurseryConfig(**SMALL, norm_place="post")
    with pytest.raises(Exception, match="expected a width that 3 heads divide"):
        NurseryConfig(**{**SMALL, "num_attention_heads": 3})


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_checkpoints_load_by_the_auto_classes_and_are_surveyed(switches, tmp_path):
    model = model_of(**switches)
    model.save_pretrained(tmp_path)
    masked = switches.get("objective") == "masked"
    auto = AutoModelForMaskedLM if masked else AutoModelForCausalLM
    loaded = auto.from_pretrained(tmp_path)
    with torch.no_grad():
        assert torch.equal(loaded(tokens()).logits, model(tokens()).logits)
    if not masked:
        said = loaded.generate(tokens(), max_new_tokens=3, do_sample=False, pad_token_id=0)
        assert said.shape == (2, 12)
    remarks = []
    sites = load_model(tmp_path, say=remarks.append).sites
    assert remarks == []
    wanted = {"embed", "resid.0", "resid.1", "norm.in", "norm.out", "embed.weight"}
    assert wanted | {"unembed.weight", "norm.mid"} <= set(sites.names)
    attends = switches.get("mixer") != "convolution"
    assert ("q.0.0" in sites.names) == ("attn.1" in sites.names) == attends


def test_the_loss_is_that_of_next_tokens_or_of_masked_ones():
    ids = tokens()
    causal, masked = model_of(), model_of(objective="masked")
    with torch.no_grad():
        logits = causal(ids).logits[:, :-1].log_softmax(dim=-1)
        wanted = -logits.gather(2, ids[:, 1:, None]).mean()
        assert causal(ids, labels=ids).loss == pytest.approx(float(wanted), rel=1e-5)
        labels = torch.full_like(ids, -100)
        labels[:, 3] = ids[:, 3]
        logits = masked(ids).logits[:, 3].log_softmax(dim=-1)
        wanted = -logits.gather(1, ids[:, 3:4]).mean()
        assert masked(ids, labels=labels).loss == pytest.approx(float(wanted), rel=1e-5)


def test_eager_attention_gives_the_same():
    model = model_of()
    with torch.no_grad():
        fused = model(tokens()).logits
        model.set_attn_implementation("eager")
        assert torch.allclose(model(tokens()).logits, fused, atol=1e-5)


def test_hidden_states_end_after_the_final_norm():
    model = model_of()
    found = model(tokens(), output_hidden_states=True).hidden_states
    assert len(found) == 3
    assert torch.equal(found[-1], model.nursery(tokens()).last_hidden_state)


def test_rows_are_shifted_both_ways():
    rows = torch.arange(1.0, 4.0)[None, :, None]
    assert shift(rows, -1).flatten().tolist() == [2, 3, 0]
    assert shift(rows, 5).flatten().tolist() == [0, 0, 0]
    assert shift(rows, 0) is rows


FRESH = """
import sys
import isoscope
assert not {"torch", "transformers"} & set(sys.modules)
import isoscope.control
assert "transformers" not in sys.modules, "control loads transformers"
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
ids = tokenizer("we hold", return_tensors="pt")
said = model.generate(**ids, max_new_tokens=4, do_sample=False)
print(type(model).__name__, tokenizer.decode(said[0]) != "")
"""


@pytest.mark.slow
def test_a_fresh_process_loads_a_checkpoint_and_generates(trained):
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(trained / "step_3")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["NurseryLM", "True"]
    assert json.loads((trained / "step_3" / "config.json").read_text())["model_type"] == (
        "isoscope_nursery"
    )
