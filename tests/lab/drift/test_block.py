"""Untrained blocks: their scores are those of eager attention, and drift goes where it says."""

import numpy as np
import pytest
import torch

from isoscope.errors import ConfigError, UndefinedError
from isoscope.lab.drift.architecture import (
    ARCHITECTURES,
    PLACES,
    Shape,
    check_heads,
    check_place,
)
from isoscope.lab.drift.block import (
    attend,
    build,
    drifting,
    find_fixed_point,
    mean_cosine,
    mean_norm,
)

SHAPE = Shape(width=32, heads=4, inner=64, tokens=12, blocks=2, std=0.3)


def rows(seed=0):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(SHAPE.tokens, SHAPE.width, generator=draw) + 0.5


def eager_weights(blocks, inputs):
    """Return what eager attention of transformers gives for the first block."""
    found = {}

    def hook(module, _inputs, output):
        if isinstance(output, tuple) and len(output) > 1 and output[1] is not None:
            found["weights"] = output[1][0]

    blocks.model.set_attn_implementation("eager")
    mask = None
    if blocks.architecture.causal:
        mask = torch.full((SHAPE.tokens,) * 2, -torch.inf).triu(1)[None, None]
    handles = [each.register_forward_hook(hook) for each in blocks.layers[0].modules()]
    blocks.layers[0](inputs[None], attention_mask=mask, **blocks._positions(inputs))
    for handle in handles:
        handle.remove()
    return found["weights"].double().numpy()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_scores_are_those_of_eager_attention(name):
    blocks = build(name, SHAPE, seed=3)
    values = blocks.run(rows())[0]
    spreads, entropies, largest = [], [], []
    for head in eager_weights(blocks, rows()):
        for query, row in enumerate(head):
            share = row[: query + 1] if blocks.architecture.causal else row
            if len(share) < 2:
                continue
            spreads.append(np.std(np.log(share)))  # scores less a constant
            entropies.append(-(share * np.log(share)).sum() / np.log(len(share)))
            largest.append(share.max())
    assert values["score-spread"] == pytest.approx(np.mean(spreads), rel=1e-5)
    assert values["attention-entropy"] == pytest.approx(np.mean(entropies), rel=1e-5)
    assert values["largest-probability"] == pytest.approx(np.mean(largest), rel=1e-5)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_output_is_that_of_the_block_and_blocks_are_a_chain(name):
    blocks = build(name, SHAPE, seed=3)
    first, second = blocks.run(rows())
    out = blocks.layers[0](rows()[None], **blocks._positions(rows()))
    out = (out[0] if isinstance(out, tuple) else out)[0]
    cosines = torch.nn.functional.normalize(out, dim=-1)
    pairs = (cosines @ cosines.T)[~torch.eye(SHAPE.tokens, dtype=bool)]
    assert first["cosine-out"] == pytest.approx(float(pairs.mean()), abs=1e-5)
    assert second["cosine-in"] == first["cosine-out"]
    assert second["mean-norm-in"] == first["mean-norm-out"] == mean_norm(out)


def test_the_same_seed_gives_the_same_block_and_leaves_the_random_state_alone():
    before = torch.random.get_rng_state()
    one, same, other = (build("bert", SHAPE, seed).run(rows()) for seed in (1, 1, 2))
    assert one == same != other
    assert torch.equal(torch.random.get_rng_state(), before)


def test_attention_in_pieces_is_attention_at_once(monkeypatch):
    draw = torch.Generator().manual_seed(0)
    heads = torch.randn(3, 2, 12, 8, generator=draw)
    whole = attend(*heads, causal=True)
    monkeypatch.setattr("isoscope.lab.drift.block.ROWS", 5)
    pieces = attend(*heads, causal=True)
    assert torch.allclose(whole[0], pieces[0], atol=1e-6)
    assert whole[1:] == pytest.approx(pieces[1:], rel=1e-6)
    expected = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
    assert torch.allclose(whole[0], expected.transpose(0, 1).reshape(12, 16), atol=1e-5)


def places_of(name):
    found = []
    for place in PLACES[1:]:
        try:
            check_place(ARCHITECTURES[name], place)
        except ConfigError:
            continue
        found.append(place)
    return found


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_drift_in_biases_moves_queries_and_keys_by_just_that(name):
    blocks = build(name, SHAPE, seed=3, biases=True)
    before = blocks.run(rows())
    draw = torch.Generator().manual_seed(1)
    vectors = tuple(torch.randn(2, SHAPE.width, generator=draw))
    heard = {}

    def hear(place):
        from isoscope.capture.attention import observe_attention

        found = {}

        def observe(_module, part, tensor):
            found.setdefault(part, tensor[0].transpose(0, 1).reshape(SHAPE.tokens, -1))

        with (
            drifting(blocks, place, vectors),
            torch.no_grad(),
            observe_attention(blocks.model, blocks.model.modules(), observe),
        ):
            blocks.layers[0](rows()[None], **blocks._positions(rows()))
        return found

    plain = hear("input")
    for place in places_of(name):
        heard = hear(place)
        moved = {part: not torch.allclose(heard[part], plain[part]) for part in "qkv"}
        assert (
            moved
            == {
                "norm-bias": {"q": True, "k": True, "v": True},
                "query-bias": {"q": True, "k": False, "v": False},
                "key-bias": {"q": False, "k": True, "v": False},
                "query-key-bias": {"q": True, "k": True, "v": False},
            }[place]
        )
        first = heard["q"][0] - plain["q"][0]  # rotary positions leave the first token alone
        if place == "query-bias":
            assert torch.allclose(first, vectors[0], atol=1e-4)
        if place == "key-bias":
            first = heard["k"][0] - plain["k"][0]
            assert torch.allclose(first, vectors[1], atol=1e-4)
    assert blocks.run(rows()) == before  # biases are zero again


def test_a_key_bias_moves_nothing_without_rotary_positions():
    vectors = (torch.zeros(32), torch.full((32,), 3.0))
    for name, same in (("bert", True), ("gpt2", True), ("llama", False)):
        blocks = build(name, SHAPE, seed=0, biases=True)
        before = blocks.run(rows())[0]["attention-entropy"]
        with drifting(blocks, "key-bias", vectors):
            after = blocks.run(rows())[0]["attention-entropy"]
        assert (abs(after - before) < 1e-5) == same, name


def test_places_that_a_block_does_not_have_are_refused():
    for name, why in (("bert", "no norm in front"), ("llama", "norms have no bias")):
        with pytest.raises(ConfigError, match=why) as caught:
            check_place(ARCHITECTURES[name], "norm-bias")
        assert caught.value.slug == "drift-place"
    assert places_of("vit") == list(PLACES[1:])


def test_widths_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="a width that 5 heads divide, got 32"):
        check_heads(("bert",), 32, 5)
    with pytest.raises(ConfigError, match="even number of rotary dimensions per head of gpt_n"):
        check_heads(("bert", "gpt_neox"), 16, 4)
    check_heads(("gpt_neox", "llama"), 32, 4)


def test_states_that_overflow_are_an_error():
    blocks = build("gpt2", SHAPE, seed=0)
    with pytest.raises(UndefinedError, match="NaN or infinite") as caught:
        blocks.run(rows() * 1e38)
    assert caught.value.slug == "drift-infinite"


def test_cosine_and_norm_of_the_mean_by_hand():
    square = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])
    assert mean_cosine(square) == pytest.approx((0 + 2**-0.5 + 2**-0.5) / 3)
    assert mean_norm(square) == pytest.approx(np.hypot(4 / 3, 5 / 3))


def test_a_fixed_point_is_where_growing_turns_into_shrinking():
    assert find_fixed_point(lambda x: 9 - x**2 / 11, [0.0, 5.0, 300.0]) == pytest.approx(
        99**0.5, rel=2e-3
    )
    assert find_fixed_point(lambda x: 1 / (1 + x), [0.0, 5.0, 300.0]) is None
    assert find_fixed_point(lambda x: x - 7.0, [0.0, 5.0, 300.0]) is None  # unstable
