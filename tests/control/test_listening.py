"""Passes of a model: observed however it is called, and nothing stays behind."""

import inspect

import pytest
import torch
from torch import nn
from transformers import (
    AutoModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    ViTConfig,
    ViTForImageClassification,
)

from isoscope.control.listening import (
    SiteListener,
    find_sites,
    select_sites,
    wrap_method,
)
from isoscope.errors import ConfigError, UnknownNameError


def small(kind, config, **sizes):
    torch.manual_seed(0)
    usual = {"vocab_size": 40, "hidden_size": 16, "num_attention_heads": 2}
    return kind(config(**(usual | sizes)))


def gpt2():
    return small(GPT2LMHeadModel, GPT2Config, n_embd=16, n_layer=3, n_head=2, n_positions=32)


def llama():
    return small(LlamaForCausalLM, LlamaConfig, num_hidden_layers=3, intermediate_size=32)


def listening(net, end):
    """Return the block in which the end of every pass of a net is reported."""
    listener = SiteListener(net, (), modules=["0"])
    return listener.listening(lambda *_: None, end=end)


def test_both_ways_to_call_a_module_are_observed():
    seen, rows = [], torch.ones(1, 3)
    net = nn.Sequential(nn.Linear(3, 2))
    with listening(net, lambda ended, complete: seen.append((ended.number, complete))):
        net(rows)
        net.forward(input=rows)
        assert list(inspect.signature(net.forward).parameters) == ["input"]
    assert seen == [(0, True), (1, True)]
    net(rows)
    assert len(seen) == 2 and "forward" not in vars(net)


def test_a_forward_of_ones_own_comes_back_after_an_error_too():
    net = nn.Sequential(nn.Linear(3, 2))
    own = net.forward = lambda rows: rows
    with pytest.raises(KeyError), listening(net, lambda *_: None):
        raise KeyError
    assert net.forward is own


def test_the_end_of_a_pass_is_reported_whether_it_raised_or_not():
    net, seen = nn.Sequential(nn.Linear(3, 2)), []
    with listening(net, lambda _, complete: seen.append(complete)):
        net(torch.ones(1, 3))
        with pytest.raises(RuntimeError):
            net(torch.ones(1, 7))
    assert seen == [True, False]


def test_wrappings_of_one_method_are_removed_in_any_order_and_within_a_call():
    net, seen, rows = nn.Linear(3, 2), [], torch.ones(1, 3)

    def once(forward, *arguments):
        first()
        return forward(*arguments)

    first = wrap_method(net, "forward", once)
    second = wrap_method(net, "forward", lambda f, *a: seen.append("second") or f(*a))
    net(rows)
    net(rows)
    second()
    assert seen == ["second", "second"] and "forward" not in vars(net)


@pytest.mark.parametrize("make", [gpt2, llama])
def test_resid_is_before_the_final_norm_and_published_is_after_it(make):
    model = make().eval()
    ids = torch.arange(12).reshape(2, 6)
    heard = {}
    for sites in ("resid", "published"):
        listener = SiteListener(model, sites)
        with listener.listening(lambda _, site, tensor: heard.update({site: tensor})):
            states = model(input_ids=ids, output_hidden_states=True).hidden_states[1:]
    assert listener.names == ("resid.0", "resid.1", "norm.out")
    for name, state in zip(listener.names, states, strict=True):
        assert torch.equal(heard[name], state)
    assert not torch.equal(heard["resid.2"], states[-1])


def test_in_a_post_norm_model_published_is_the_stream(tiny):
    model, heard = AutoModel.from_pretrained(tiny).eval(), {}
    for sites in ("resid", "published"):
        with SiteListener(model, sites).listening(
            lambda _, s, tensor: heard.update({s: tensor})
        ):
            model(input_ids=torch.arange(12).reshape(2, 6))
    assert torch.equal(heard["resid.2"], heard["norm.out"])


def test_a_pass_says_its_number_its_mask_and_whether_it_trains():
    model, seen = gpt2().train(), []
    ids = torch.arange(12).reshape(2, 6)
    mask = torch.ones_like(ids)
    listener = SiteListener(model, ["resid.1", "norm.out"])
    with listener.listening(lambda current, site, _: seen.append((current, site))):
        model(input_ids=ids, attention_mask=mask)
        with torch.no_grad():
            model(input_ids=ids)
    (first, *_), (second, *_) = seen[0], seen[2]
    assert [site for _, site in seen] == ["resid.1", "norm.out"] * 2
    assert (first.number, first.trains, second.number, second.trains) == (0, True, 1, False)
    assert torch.equal(first.mask, mask) and second.mask is None


def test_the_sites_of_an_image_model_are_found():
    config = {"num_hidden_layers": 2, "intermediate_size": 32, "image_size": 32}
    model = small(ViTForImageClassification, ViTConfig, patch_size=8, **config)
    assert select_sites(find_sites(model.vit), "resid") == ("resid.0", "resid.1")


def test_sites_that_are_not_there_are_refused_with_what_is():
    sites = find_sites(gpt2().transformer)
    with pytest.raises(UnknownNameError, match=r"no site is called 'resid\.7'") as caught:
        select_sites(sites, ["resid.0", "resid.7"])
    assert "did you mean" in caught.value.hint
    with pytest.raises(ConfigError, match="sites that a batch runs through") as caught:
        select_sites(sites, "embed.weight")
    assert caught.value.slug == "penalty-sites"
    assert select_sites(sites, "embed") == ("embed",)
