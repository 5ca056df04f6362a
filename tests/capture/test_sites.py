"""Sites are chosen by family, heard when asked for, and outlined."""

from functools import cache

import pytest
import torch
from families import FAMILIES
from torch import nn
from transformers import AutoModelForCausalLM

from isoscope.capture.sites import Sites, outline
from isoscope.errors import UnknownNameError


@cache
def sites_of(name):
    family = FAMILIES[name]
    model = family.built()
    return Sites.discover(model, model, lambda: model(**family.inputs()))


@cache
def causal():
    family = FAMILIES["llama"]
    model = family.built(auto=AutoModelForCausalLM)
    return Sites.discover(model, model.model, lambda: model.model(**family.inputs()))


def test_the_default_is_the_stream_the_norm_and_both_matrices():
    assert causal().select() == (
        "embed", "resid.0", "resid.1", "resid.2", "norm.in", "norm.mid", "norm.out",
        "embed.weight", "unembed.weight",
    )  # fmt: skip
    assert causal().select(Sites.DEFAULT) == causal().select()


@pytest.mark.parametrize(
    ("families", "expected"),
    [
        (["resid.1"], ["resid.1"]),
        (["embed"], ["embed", "embed.weight"]),
        (["embed.weight"], ["embed.weight"]),
        (["unembed"], ["unembed.weight"]),
        (["k.2"], ["k.2.0", "k.2.1"]),
        (["q.2.3", "norm.mid", "attn.0"], ["attn.0", "norm.mid", "q.2.3"]),
    ],
)
def test_families_are_prefixes_and_the_order_is_fixed(families, expected):
    assert list(causal().select(families)) == expected


def test_sides_may_be_named_or_skipped():
    sites = sites_of("t5")
    assert sites.select(["enc.resid"]) == ("enc.resid.0", "enc.resid.1", "enc.resid.2")
    assert sites.select(["resid.1"]) == ("enc.resid.1", "dec.resid.1")
    assert {site[:4] for site in sites.select(["dec"])} == {"dec."}


def test_the_default_suits_models_that_lack_some_of_it():
    assert sites_of("convnext").select() == ("embed", "stage.0", "stage.1", "stage.2")
    assert "norm.out" not in sites_of("beit").select()
    assert "resid.2" in sites_of("mamba").select()


def test_what_was_named_must_be_there():
    with pytest.raises(UnknownNameError, match="no site is called 'reside'") as e:
        causal().select(["norm", "reside"])
    assert e.value.hint.startswith("did you mean 'resid'? this model has: embed, resid, attn")
    assert e.value.slug == "unknown-site"
    with pytest.raises(UnknownNameError, match="no site is called 'q'"):
        sites_of("mamba").select(["q"])
    with pytest.raises(UnknownNameError, match=r"no site is called 'resid\.9'"):
        causal().select(["resid.9"])


def test_only_what_is_requested_is_tapped():
    sites = causal()
    with sites.listening(["resid.1", "embed.weight"], lambda *_: None):
        hooks = [m for m in sites.body.modules() if m._forward_hooks or m._forward_pre_hooks]
        assert hooks == [sites.body.layers[1]]
        from transformers import AttentionInterface

        functions = AttentionInterface._global_mapping.values()
        assert not any(type(each).__name__ == "_Wrapper" for each in functions)


def test_a_new_pass_is_captured_like_the_first():
    sites, said = sites_of("albert"), []
    inputs = FAMILIES["albert"].inputs()
    wanted = ["resid.1", "norm.out", "q.2.1"]
    with torch.no_grad(), sites.listening(wanted, lambda site, _: said.append(site)) as calls:
        for _ in range(2):
            calls.restart()
            sites.body(**inputs)
    assert said == ["resid.1", "q.2.1", "norm.out"] * 2


def test_tensors_are_the_models_own():
    sites, heard, own = causal(), {}, []
    handle = sites.body.layers[2].register_forward_hook(lambda *a: own.append(a[2]))
    with torch.no_grad(), sites.listening(["resid.2", "norm.in"], heard.__setitem__):
        sites.body(**FAMILIES["llama"].inputs())
    handle.remove()
    assert heard["resid.2"].data_ptr() == heard["norm.in"].data_ptr() == own[0].data_ptr()


@pytest.mark.parametrize("name", ["llama", "falcon", "opt", "deberta-v2", "gptj"])
def test_a_loss_of_what_is_captured_reaches_the_weights(name):
    sites, inputs = sites_of(name), FAMILIES[name].inputs()
    names = [site for site in sites.names if site in sites.taps or site in sites.heads]
    plain, attached = {}, {}
    with sites.listening(names, lambda site, t: plain.__setitem__(site, t.clone())):
        assert sites.body(**inputs).last_hidden_state.requires_grad
    assert not any(tensor.requires_grad for tensor in plain.values())

    keep = attached.__setitem__
    with sites.listening(names, lambda site, t: keep(site, t.clone()), detach=False):
        sites.body(**inputs)
    assert all(torch.equal(attached[site], plain[site]) for site in names)
    first = next(sites.body.parameters())
    for site in names:
        loss = attached[site].square().sum()
        (slope,) = torch.autograd.grad(loss, first, retain_graph=True)
        assert slope.any(), site


def test_an_unknown_site_is_not_listened_to():
    with (
        pytest.raises(UnknownNameError, match="no site is called 'resid'"),
        causal().listening(["resid"], lambda *_: None),
    ):
        pass


def test_matrices_are_at_hand():
    assert {site: tuple(w.shape) for site, w in causal().weights.items()} == {
        "embed.weight": (99, 32),
        "unembed.weight": (99, 32),
    }


def test_a_transformer_of_torch_needs_no_config():
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(block, 2, nn.LayerNorm(8), enable_nested_tensor=False).eval()
    x = torch.randn(2, 5, 8)
    sites, heard = Sites.discover(model, model, lambda: model(x)), {}
    assert sites.names == (
        "embed", "resid.0", "resid.1", "attn.0", "attn.1", "mlp.0", "mlp.1",
        "norm.in", "norm.mid", "norm.out",
    )  # fmt: skip
    with torch.no_grad(), sites.listening(sites.names, heard.__setitem__):
        output = model(x)
    assert torch.equal(heard["norm.out"], output)
    total = heard["resid.0"] + heard["attn.1"] + heard["mlp.1"]
    torch.testing.assert_close(total, heard["resid.1"])


class Twice(nn.Module):
    """A convolution and a layer that runs twice."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 2)
        self.shared = nn.Linear(4, 4)

    def forward(self, x):
        rows = self.stem(x).flatten(2).transpose(1, 2)
        return self.shared(self.shared(rows))


def test_modules_given_by_name_are_sites_numbered_by_call():
    model, heard = Twice(), {}
    x = torch.randn(2, 3, 5, 5)
    sites = Sites.of_modules(model, {"map": "stem", "again": "shared"}, lambda: model(x))
    assert sites.widths == {"map": 4, "again.0": 4, "again.1": 4}
    assert sites.select() == sites.names
    assert sites.select(["again"]) == ("again.0", "again.1")
    with torch.no_grad(), sites.listening(sites.names, heard.__setitem__):
        output = model(x)
    assert heard["map"].shape == (2, 16, 4)
    assert torch.equal(heard["again.1"], output)


def test_layer_one_is_not_layer_ten():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    sites = Sites.of_modules(
        model, {"at.1": "0", "at.10": "1"}, lambda: model(torch.ones(1, 2))
    )
    assert sites.select(["at.1"]) == ("at.1",)
    assert sites.select(["at"]) == ("at.1", "at.10")


def test_the_outline_counts_sites_by_family_and_width():
    assert ("unembed.weight", 1, 32) in outline(causal())
    assert ("dec.q", 8, 8) in outline(sites_of("t5"))


def test_layers_are_counted_by_family_without_heads():
    sites = ["enc.embed", "enc.resid.0", "enc.resid.5", "enc.q.9.0", "dec.resid.0", "norm.out"]
    found = Sites(body=None, widths=dict.fromkeys(sites, 4), taps={}).layers
    assert found == {"enc.resid": 6, "dec.resid": 1}


def test_the_default_of_an_encoder_decoder_has_no_heads():
    sites = Sites(
        body=None,
        widths=dict.fromkeys(
            ["enc.embed", "enc.resid.0", "enc.q.0.0", "dec.resid.0", "dec.attn.0", "my.site"], 4
        ),
        taps={},
    )
    assert sites.select() == ("enc.embed", "enc.resid.0", "dec.resid.0", "my.site")
