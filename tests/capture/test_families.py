"""Sites of many families, built small with random weights: as many as there are, and true."""

from functools import cache

import pytest
import torch
from families import FAMILIES
from torch import nn

from isoscope.capture.discover import find_parts
from isoscope.capture.sites import Sites, outline

WITH_HEADS = [name for name, family in FAMILIES.items() if family.heads]
WITH_NORM = [name for name, family in FAMILIES.items() if family.norm]
SUMS = [name for name, family in FAMILIES.items() if family.joins == "sum"]
POST = [name for name, family in FAMILIES.items() if isinstance(family.joins, tuple)]
# Attention logits have terms besides queries and keys, which depend on the position alone.
BIASED = {"t5", "byt5", "bloom", "falcon-rw", "beit", "mpnet"}
# Terms that depend on the content (deberta), attentions given for other stacks too (canine).
UNTOLD = {"deberta-v2", "canine"}


@cache
def surveyed(name, attention=None):
    """Return family, model, sites and what was heard at all of them in a second pass."""
    family = FAMILIES[name]
    model = family.built(**({"attn_implementation": attention} if attention else {}))
    sites = Sites.discover(model, model, lambda: model(**family.inputs()))
    heard = {}

    def keep(site, tensor):
        heard[site] = tensor.clone()  # falcon adds attention into the output of its MLP

    with torch.no_grad(), sites.listening(sites.names, keep) as calls:
        calls.restart()
        output = model(**family.inputs(), **_attentions(attention))
    return family, model, sites, heard, output


def _attentions(attention):
    return {"output_attentions": True} if attention == "eager" else {}


def blocks(family, model, prefix):
    """Return the blocks of a stack in the order of their runs, told by the test's own table."""
    number = family.prefixes.index(prefix)
    listed = list(model.get_submodule(family.blocks[number]))
    return [listed[min(layer, len(listed) - 1)] for layer in range(family.layers[number])]


def expected(family):
    names = []
    for prefix, layers in zip(family.prefixes, family.layers, strict=True):
        stream = "stage" if family.widths else "resid"
        names += [f"{prefix}embed"]
        names += [f"{prefix}{f}.{i}" for f in (stream, *family.parts) for i in range(layers)]
        names += [f"{prefix}norm.{part}" for part in ("in", "mid", "out") if family.norm]
        names += [
            f"{prefix}{part}.{layer}.{head}"
            for part, heads in zip("qkv", (family.heads, *[family.key_heads] * 2), strict=True)
            for layer in range(layers)
            for head in range(heads)
        ]
    return (*names, *family.matrices)


@pytest.mark.parametrize("name", FAMILIES)
def test_it_has_the_sites_it_should_have_in_order(name):
    family, _, sites, heard, _ = surveyed(name)
    assert sites.names == expected(family)
    assert set(heard) == set(sites.names) - set(family.matrices)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_tensor_has_the_width_of_its_site_and_the_positions_of_its_stream(name):
    family, _, sites, heard, _ = surveyed(name)
    for site, tensor in heard.items():
        assert tensor.shape[-1] == sites.widths[site]
        if site.split(".")[0 if family.prefixes == ("",) else 1] in "qkv":
            assert sites.widths[site] == family.head_width
        elif not family.widths:
            assert sites.widths[site] == 32
            start = site[:4] if len(family.prefixes) == 2 else ""
            assert tensor.shape[:2] == heard[f"{start}embed"].shape[:2]
        assert tensor.ndim == 3
        assert not tensor.requires_grad


@pytest.mark.parametrize("name", FAMILIES)
def test_the_stream_is_what_a_plain_hook_on_the_blocks_hears(name):
    family, model, _, heard, _ = surveyed(name)
    for prefix in family.prefixes:
        said, given = [], []
        handles = []
        for block in dict.fromkeys(blocks(family, model, prefix)):
            handles.append(block.register_forward_hook(lambda *a, said=said: said.append(a[2])))
            handles.append(
                block.register_forward_pre_hook(
                    lambda _, inputs, words, given=given: given.append(
                        inputs[0] if inputs else words["hidden_states"]
                    ),
                    with_kwargs=True,
                )
            )
        with torch.no_grad():
            model(**family.inputs())
        for handle in handles:
            handle.remove()
        said = [each[0] if isinstance(each, tuple) else each for each in said]
        stream = "stage" if family.widths else "resid"
        assert torch.equal(heard[f"{prefix}embed"], rows(given[0]))
        for layer, tensor in enumerate(said):
            assert torch.equal(heard[f"{prefix}{stream}.{layer}"], rows(tensor))


def rows(tensor):
    """Return one row per spatial position, the slow way."""
    if tensor.ndim == 3:
        return tensor
    batch, channels, height, width = tensor.shape
    return torch.stack(
        [tensor[:, :, i, j] for i in range(height) for j in range(width)], dim=1
    ).reshape(batch, height * width, channels)


@pytest.mark.parametrize("name", WITH_NORM)
def test_gain_and_bias_applied_to_the_middle_of_the_norm_give_its_output(name):
    family, model, sites, heard, _ = surveyed(name)
    for prefix, layers in zip(family.prefixes, family.layers, strict=True):
        norm = model.get_submodule(sites.taps[f"{prefix}norm.out"].module)
        middle, gain = heard[f"{prefix}norm.mid"], norm.weight + (name == "gemma3")
        output = middle * gain + (0 if getattr(norm, "bias", None) is None else norm.bias)
        assert gain.std() > 0.05  # else the test could not tell before from after
        torch.testing.assert_close(output, heard[f"{prefix}norm.out"], rtol=1e-4, atol=1e-5)
        last = heard[f"{prefix}resid.{layers - 1}"]
        side = "in" if family.norm == "after" else "out"
        assert torch.equal(heard[f"{prefix}norm.{side}"], last)


@pytest.mark.parametrize("name", [n for n in WITH_NORM if n not in {"canine", "opt-350m"}])
def test_the_last_norm_gives_what_the_model_gives(name):
    family, _, _, heard, output = surveyed(name)
    # canine goes on to characters, the small OPT to a narrower space
    assert torch.equal(heard[f"{family.prefixes[-1]}norm.out"], output.last_hidden_state)


@pytest.mark.parametrize("name", SUMS)
def test_the_parts_of_a_block_add_up_to_the_stream(name):
    family, _, _, heard, _ = surveyed(name)
    prefix, stream = family.prefixes[0], heard[f"{family.prefixes[0]}embed"]
    for layer in range(family.layers[0]):
        stream = stream + heard[f"{prefix}attn.{layer}"] + heard[f"{prefix}mlp.{layer}"]
        torch.testing.assert_close(
            stream, heard[f"{prefix}resid.{layer}"], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("name", POST)
def test_the_parts_of_a_post_norm_block_are_normed_with_the_stream(name):
    family, model, _, heard, _ = surveyed(name)
    prefix, stream = family.prefixes[0], heard[f"{family.prefixes[0]}embed"]
    for layer, block in enumerate(blocks(family, model, prefix)):
        for part, norm in zip(("attn", "mlp"), family.joins, strict=True):
            said = heard[f"{prefix}{part}.{layer}"]
            stream = block.get_submodule(norm)(stream + said).detach()
        torch.testing.assert_close(
            stream, heard[f"{prefix}resid.{layer}"], rtol=1e-4, atol=1e-5
        )


def heads(heard, part, layer, count):
    """Return (batch, heads, positions, width), keys repeated for the queries they serve."""
    found = [t for s, t in heard.items() if s.startswith(f"{part}.{layer}.")]
    return torch.stack(found, dim=1).repeat_interleave(count // len(found), dim=1)


def attentions(family, output, prefix):
    if prefix:
        return output[f"{'encoder' if prefix == 'enc.' else 'decoder'}_attentions"]
    return output.attentions


@pytest.mark.parametrize("name", [n for n in WITH_HEADS if n not in UNTOLD])
def test_queries_and_keys_give_the_attention_of_the_model(name):
    family, _, _, heard, output = surveyed(name, "eager")
    for prefix, layers in zip(family.prefixes, family.layers, strict=True):
        for layer in range(layers):
            query, key = (heads(heard, f"{prefix}{p}", layer, family.heads) for p in "qk")
            given = attentions(family, output, prefix)[layer]
            seen = given > 0
            product = (query @ key.transpose(-1, -2) * family.scale).masked_fill(~seen, -1e9)
            if name in BIASED:
                # what is left besides them is the same in both examples of the batch
                rest = (given.log() - product).masked_fill(~seen, 0)
                count = seen.sum(-1, keepdim=True)
                rest = (rest - rest.sum(-1, keepdim=True) / count).masked_fill(~seen, 0)
                torch.testing.assert_close(rest[0], rest[1], rtol=1e-4, atol=1e-5)
            else:
                torch.testing.assert_close(product.softmax(-1), given, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in WITH_HEADS if n not in UNTOLD])
def test_values_weighed_by_the_attention_of_the_model_give_its_output(name):
    family, model, _, heard, output = surveyed(name, "eager")
    for prefix in family.prefixes:
        for layer, block in enumerate(blocks(family, model, prefix)):
            value = heads(heard, f"{prefix}v", layer, family.heads)
            mixed = attentions(family, output, prefix)[layer] @ value
            said = block.get_submodule(family.out)(mixed.transpose(1, 2).flatten(2))
            for part in ("post_attention_layernorm", "layer_scale1"):
                if name in {"gemma3", "dinov2"} and hasattr(block, part):
                    said = block.get_submodule(part)(said)
            site = f"{prefix}attn.{layer}"
            torch.testing.assert_close(said.detach(), heard[site], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", sorted(UNTOLD))
def test_heads_of_projections_are_their_slices(name):
    family, model, _, heard, _ = surveyed(name)
    for layer, block in enumerate(blocks(family, model, "")):
        given = heard["embed" if layer == 0 else f"resid.{layer - 1}"]
        attention = block.attention.self
        for part, word in zip("qkv", ("query", "key", "value"), strict=True):
            linear = getattr(attention, word, None) or getattr(attention, f"{word}_proj")
            said = linear(given).detach()
            for head in range(4):
                slice_ = said[..., 8 * head : 8 * head + 8]
                torch.testing.assert_close(heard[f"{part}.{layer}.{head}"], slice_)


# the alibi of falcon is not the same number in its eager and its fast attention
@pytest.mark.parametrize("name", [n for n in WITH_HEADS if n not in {*UNTOLD, "falcon-rw"}])
def test_fast_attention_is_captured_as_well_as_eager(name):
    heard, eager = surveyed(name)[3], surveyed(name, "eager")[3]
    for site, tensor in heard.items():
        torch.testing.assert_close(tensor, eager[site], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
def test_listening_changes_no_bit_and_leaves_nothing_behind(name):
    family, model, sites, _, output = surveyed(name)
    with torch.no_grad():
        plain = model(**family.inputs())
    assert torch.equal(plain.last_hidden_state, output.last_hidden_state)
    before = state(model)
    with pytest.raises(ZeroDivisionError), sites.listening(sites.names, fails):
        model(**family.inputs())
    assert state(model) == before
    assert not any(len(hooks) for hooks in before["hooks"])


def fails(_site, _tensor):
    raise ZeroDivisionError


def state(model):
    """Return what taps might leave behind."""
    from transformers import AttentionInterface

    modules = list(model.modules())
    configs = [each.config for each in modules if hasattr(each, "config")]
    return {
        "hooks": [{**m._forward_hooks, **m._forward_pre_hooks} for m in modules],
        "configs": [config.to_dict() for config in configs],
        "attention": [getattr(config, "_attn_implementation", None) for config in configs],
        "functions": dict(AttentionInterface._global_mapping),
        "members": [sorted(vars(m)) for m in modules],
    }


def test_there_are_more_than_enough_families():
    assert len({family.kind for family in FAMILIES.values()}) >= 29


def test_an_outline_counts_sites_by_family_and_width():
    assert outline(surveyed("llama")[2]) == [
        ("embed", 1, 32), ("resid", 3, 32), ("attn", 3, 32), ("mlp", 3, 32), ("norm", 3, 32),
        ("q", 12, 8), ("k", 6, 8), ("v", 6, 8), ("embed.weight", 1, 32),
    ]  # fmt: skip
    assert outline(surveyed("convnext")[2]) == [
        ("embed", 1, 8), ("stage", 1, 8), ("stage", 1, 16), ("stage", 1, 24)
    ]  # fmt: skip


def test_a_block_of_torch_has_its_parts():
    found = find_parts(nn.TransformerEncoderLayer(8, 2))
    assert (found.attn, found.mlp) == ("self_attn", "linear2")


def test_a_block_without_parts_has_none():
    found = find_parts(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)))
    assert (found.attn, found.mlp) == (None, None)
