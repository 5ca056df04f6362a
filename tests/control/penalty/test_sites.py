"""A penalty's reading is `iso.measure` of the same site, before and after a final norm."""

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from isoscope import measure
from isoscope.control import CosReg, DebiasedIsotropy, IStar, MeanCosine, penalised
from isoscope.errors import PenaltyError

SIZES = {"vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 2}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
IDS = torch.randint(40, (7, 9), generator=torch.manual_seed(3))
MASK = torch.ones(7, 9, dtype=torch.int64)
MASK[2, 5:] = 0
REAL = MASK.bool()


def bert():
    model = BertForSequenceClassification(BertConfig(**SIZES, **STILL, intermediate_size=24))
    blocks = model.bert.encoder.layer
    return model, blocks, blocks[-1].output.LayerNorm


def gpt2():
    config = GPT2Config(
        vocab_size=40, n_embd=12, n_layer=3, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )
    model = GPT2LMHeadModel(config)
    return model, model.transformer.h, model.transformer.ln_f


def llama():
    model = LlamaForCausalLM(LlamaConfig(**SIZES, intermediate_size=24))
    return model, model.model.layers, model.model.norm


@pytest.fixture(params=[bert, gpt2, llama])
def hooked(request):
    """Return a model, and a function that gives what plain hooks see at blocks and norm."""
    torch.manual_seed(0)
    model, blocks, norm = request.param()
    for parameter in model.parameters():  # apart from the small numbers of a fresh model
        parameter.data += 0.2 * torch.randn(parameter.shape)
    seen = {}

    def hook(name):
        def note(_module, _inputs, output):
            seen[name] = output if isinstance(output, torch.Tensor) else output[0]

        return note

    for number, block in enumerate(blocks):
        block.register_forward_hook(hook(f"resid.{number}"))
    norm.register_forward_hook(hook("norm.out"))
    return model.train(), seen


def reading(model, penalty):
    with penalised(model, penalty) as listener:
        model(input_ids=IDS, attention_mask=MASK)
        listener()
    return penalty.reading


def rows(seen, names):
    return np.concatenate([seen[name][REAL].detach().numpy() for name in names])


ALL = ["resid.0", "resid.1", "resid.2"]
SITES = [
    ("resid", ALL),
    ("resid.1", ["resid.1"]),
    ("norm.out", ["norm.out"]),
    (["resid.0", "norm.out"], ["resid.0", "norm.out"]),
    ("published", ["resid.0", "resid.1", "norm.out"]),
]


@pytest.mark.parametrize(("sites", "names"), SITES, ids=[str(each) for each, _ in SITES])
def test_the_reading_of_a_penalty_is_the_measure_of_its_sites(hooked, sites, names):
    model, seen = hooked
    star = reading(model, IStar(zeta=0.2, rows=None, sites=sites))
    cosine = reading(model, MeanCosine(rows=None, sites=sites, per_layer=False))
    found = measure(rows(seen, names), measures=["isoscore-star", "mean-cosine"], zeta=0.2)
    expected = {each.measure: each.value for each in found}
    assert star == pytest.approx(expected["isoscore-star"], abs=1e-5)
    assert cosine == pytest.approx(expected["mean-cosine"], abs=1e-5)


@pytest.mark.parametrize(("sites", "names"), SITES[:3], ids=[str(s) for s, _ in SITES[:3]])
def test_so_is_that_of_the_debiased_one(hooked, sites, names):
    """Of rows it is the measure; of sequences, the same halves of what the hooks see."""
    model, seen = hooked
    found = reading(model, DebiasedIsotropy(rows=None, sites=sites))
    by_hooks = DebiasedIsotropy(rows=None)
    by_hooks([seen[name] for name in names], MASK)
    assert found == pytest.approx(by_hooks.reading, abs=1e-7)
    cloud = rows(seen, names)
    by_hooks(torch.from_numpy(cloud))
    (expected,) = measure(cloud, measures=["isoscore-debiased"])
    assert by_hooks.reading == pytest.approx(min(expected.value, 1.0), abs=1e-4)


def test_each_layer_by_itself_is_the_mean_of_their_measures(hooked):
    model, seen = hooked
    found = reading(model, MeanCosine(rows=None))
    each = [measure(rows(seen, [name]), measures=["mean-cosine"])[0].value for name in ALL]
    assert found == pytest.approx(np.mean(each), abs=1e-5)
    last = reading(model, CosReg(rows=None))
    assert last == pytest.approx(each[-1], abs=1e-5)
    some = reading(model, IStar(rows=None, layers=[0, -1]))
    known = reading(model, IStar(rows=None, sites=["resid.0", "resid.2"]))
    assert some == known


def gradient(model, sites, weight):
    model.zero_grad()
    with penalised(model, IStar(rows=None, sites=sites)) as listener:
        model(input_ids=IDS, attention_mask=MASK)
        listener().backward()
    return weight.grad.clone()


@pytest.mark.parametrize("sites", ["resid", "norm.out", "mlp", "attn.1", "q.1"])
def test_checkpointing_leaves_the_gradient_as_it_is(hooked, sites):
    model, seen = hooked
    weight = next(p for name, p in model.named_parameters() if "1" in name and p.ndim == 2)
    expected = gradient(model, sites, weight)
    assert expected.abs().sum() > 0
    if sites == "resid":
        model.zero_grad()
        model(input_ids=IDS, attention_mask=MASK)
        IStar(rows=None)([seen[name] for name in ALL], MASK).backward()
        torch.testing.assert_close(weight.grad, expected)
    # Within a reentrant checkpoint nothing has a gradient; its output has one.
    for reentrant in (False, True) if sites in ("resid", "norm.out") else (False,):
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        model.enable_input_require_grads()
        found = gradient(model, sites, weight)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("sites", ["norm.mid", "embed"])
def test_sites_outside_of_blocks_have_gradients(hooked, sites):
    model, _ = hooked
    weight = next(p for p in model.parameters() if p.ndim == 2)  # the first, of the embeddings
    assert gradient(model, sites, weight).abs().sum() > 0


def test_a_model_output_has_no_other_sites(hooked):
    model, _ = hooked
    output = model(input_ids=IDS, output_hidden_states=True)
    assert IStar()(output).item() == IStar(sites="published")(output).item()
    with pytest.raises(PenaltyError, match=r"cannot find the sites 'norm\.out'") as caught:
        IStar(sites="norm.out")(output)
    assert caught.value.slug == "penalty-sites"
