"""Every measure by token equals its slow definition on what a plain hook stores of a model."""

import numpy as np
import pytest
import torch

from isoscope.api import survey
from isoscope.hashing import hash_tuples, named_documents
from isoscope.study.model import load_model
from stored import known_by_id

NAMES = (
    "self-similarity",
    "inter-similarity",
    "intra-similarity",
    "sentence-similarity",
    "mev",
)
SITE = "resid.1"


@pytest.fixture(scope="module")
def stored(tiny, texts):
    """Return rows, document, position, token and special of one site, text by text."""
    found = load_model(tiny)
    tokenizer, body = found.loaded.tokenizer, found.loaded.body
    parts = []

    def keep(_module, _given, output):
        parts.append((output[0] if isinstance(output, tuple) else output)[0].clone())

    handle = body.encoder.layer[1].register_forward_hook(keep)
    columns = []
    for number, text in enumerate(texts):
        given = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        special = given.pop("special_tokens_mask")[0].bool().tolist()
        with torch.inference_mode():
            body(**given)
        ids = given["input_ids"][0].tolist()
        columns += [(number, i, *pair) for i, pair in enumerate(zip(ids, special, strict=True))]
    handle.remove()
    number, place, token, special = (np.array(c) for c in zip(*columns, strict=True))
    return torch.cat(parts).double().numpy(), number, place, token, special


def truth(rows, number, place, token):
    """Return every measure with its pairs enumerated."""
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    near = units @ units.T
    types = np.unique(token)
    sets = [np.flatnonzero(token == each) for each in types]
    within = [np.mean([near[i, j] for i in s for j in s if i != j]) for s in sets if len(s) > 1]
    between = [near[np.ix_(a, b)].mean() for a in sets for b in sets if a is not b]
    sentences = []
    for each in np.unique(number):
        part = rows[number == each]
        mean = part.mean(axis=0)
        if len(part) > 1:
            cosines = part @ mean / np.linalg.norm(part, axis=1) / np.linalg.norm(mean)
            sentences.append(cosines.mean())
    keys = named_documents(np.array([f"memory:{n}" for n in number]))
    draws = hash_tuples(keys, place.astype(np.uint64))
    shares = []
    for s in sets:
        kept = s[np.argsort(draws[s])[:16]]
        values = np.linalg.svd(rows[kept], compute_uv=False) ** 2
        shares += [values[0] / values.sum()] if len(s) >= 5 else []
    across = near[number[:, None] != number].mean()
    return {
        "self-similarity": np.mean(within),
        "self-similarity-adjusted": np.mean(within) - across,
        "inter-similarity": np.mean(between),
        "inter-similarity-token": near[token[:, None] != token].mean(),
        "intra-similarity": np.mean(within),
        "intra-similarity-adjusted": np.mean(within) - np.mean(between),
        "sentence-similarity": np.mean(sentences),
        "sentence-similarity-adjusted": np.mean(sentences) - across,
        "mev": np.mean(shares),
    }


@pytest.fixture(scope="module")
def surveyed(tiny, texts):
    def done(**how):
        corpus = known_by_id(texts)  # mev takes ten occurrences of a type, by keys of documents
        found = survey(tiny, corpus, sites=["resid"], measures=NAMES, tokens=None, **how)
        return {(r.variant, r.measure): r for r in found if r.site == SITE}

    return done


@pytest.mark.parametrize("variant", ["all", "no-special"])
def test_each_is_its_slow_definition(stored, surveyed, variant):
    rows, number, place, token, special = stored
    kept = np.ones_like(special, dtype=bool) if variant == "all" else ~special.astype(bool)
    expected = truth(rows[kept], number[kept], place[kept], token[kept])
    found = surveyed()
    for name, value in expected.items():
        assert found[variant, name].value == pytest.approx(value, abs=1e-6), name


@pytest.mark.parametrize("how", [{"batch": 1}, {"batch": 7, "unit": 60}, {"unit": 100}])
def test_batches_and_units_do_not_matter(surveyed, how):
    whole, cut = surveyed(), surveyed(**how)
    assert whole.keys() == cut.keys()
    for key, reading in whole.items():
        assert cut[key].value == pytest.approx(reading.value, abs=1e-6), key
        assert cut[key].n == reading.n
