"""explain of a whole survey: tokens of known frequency whose vectors are planted in a model."""

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2Model

import isoscope as iso

USUAL, RARE, WIDTH = 10, 60, 48
DOCUMENTS, LENGTH = 60, 50


def saved(folder, common):
    """Save a model that embeds ten tokens as one vector, and the others anywhere."""
    torch.manual_seed(0)
    planted = GPT2Model(
        GPT2Config(
            vocab_size=USUAL + RARE, n_embd=WIDTH, n_layer=1, n_head=2, n_positions=LENGTH,
            bos_token_id=0, eos_token_id=0,
        )
    )  # fmt: skip
    vectors = torch.nn.functional.normalize(torch.randn(USUAL + RARE, WIDTH), dim=1)
    vectors[:USUAL] = common(vectors[0])
    with torch.no_grad():
        planted.wpe.weight.zero_()
        planted.wte.weight.copy_(vectors)
    planted.save_pretrained(folder)
    return folder


def causes(model, folder, share):
    """Return the causes of the embedding of texts with this share of rare tokens."""
    rng, n = np.random.default_rng(1), DOCUMENTS * LENGTH
    tokens = rng.integers(0, USUAL, n)
    places = rng.permutation(n)[: round(share * n)]
    tokens[places] = USUAL + np.arange(len(places)) % RARE
    np.save(folder / "tokens.npy", tokens.reshape(DOCUMENTS, LENGTH))
    options = {"sites": ["embed"], "measures": ["mean-cosine"], "tokens": None}
    iso.survey(model, folder / "tokens.npy", output=folder / "run", **options)
    return {each.cause: each for each in iso.explain(folder / "run", sites=["embed"])}


@pytest.mark.parametrize("share", [0.049, 0.052])
def test_rare_tokens_outside_the_cone_read_as_their_share(tmp_path, share):
    """Bands of less than 5 % of the rows did not count once, and larger ones decided alone."""
    found = causes(saved(tmp_path / "model", lambda anywhere: anywhere), tmp_path, share)
    assert found["frequency"].share == pytest.approx(share, abs=0.005)
    assert found["mean"].share == pytest.approx(1 - share, abs=0.005)
    assert found["position"].share == pytest.approx(0, abs=0.005)
    assert found["position"].low < 0 < found["position"].high  # nothing is cut off at zero
    assert found["frequency"].low < share < found["frequency"].high


def test_what_is_removed_takes_nothing_from_what_depends(tmp_path):
    """All likeness lies along one dimension, and rare tokens are outside of it all the same."""
    axis = torch.eye(WIDTH)[7]
    found = causes(saved(tmp_path / "model", lambda _: axis), tmp_path, 0.1)
    assert found["dimensions"].share == pytest.approx(1, abs=0.005)
    assert found["frequency"].share == pytest.approx(0.1, abs=0.01)
    parts = (found[name].share for name in ("frequency", "position", "mean"))
    assert sum(parts) == pytest.approx(1, abs=1e-6)


def test_eight_equal_dimensions_have_all_of_the_cosine(tmp_path):
    mean = np.r_[np.full(8, np.sqrt(0.3 / 8)), np.zeros(760)]
    noise = np.random.default_rng(2).normal(size=(1200, 768)) * np.sqrt(0.7 / 768)
    names = np.repeat(np.arange(60), 20)
    options = {"document": names, "measures": ["mean-cosine"]}
    iso.measure(mean + noise, output=tmp_path / "run", **options)
    found = {each.cause: each for each in iso.explain(tmp_path / "run")}["dimensions"]
    assert found.share == pytest.approx(1, abs=0.01)
    assert found.low <= 1 <= found.high
    assert {each["dimension"] for each in found.named} == set(range(8))
