"""The geometry of a sweep: what `measure` says of the same rows, layer by layer and joined."""

import numpy as np
import pytest
import torch

from isoscope.api import measure
from isoscope.lab.sweep.geometry import LAYERS, MEASURES, geometry


@pytest.fixture
def probed(trainer):
    held = trainer()
    batches = [held.batch(held.test, range(a, a + 8)) for a in range(0, 32, 8)]
    return held, batches, geometry(held.subject, batches, zeta=0.2)


def rows_of(held, batches, layer):
    found, documents = [], []
    for batch in batches:
        with torch.inference_mode():
            states = held.body(**batch.inputs, output_hidden_states=True).hidden_states
        real = batch.inputs["attention_mask"].bool()
        chosen = states[1:] if layer is None else [states[1 + layer]]
        for number, name in enumerate(batch.documents):
            for each in chosen:
                part = each[number][real[number]].numpy()
                found.append(part)
                documents += [name] * len(part)
    return np.concatenate(found), np.array(documents)


@pytest.mark.parametrize(("site", "layer"), [("resid.0", 0), ("resid.2", 2), (LAYERS, None)])
@pytest.mark.parametrize("name", ["isoscore-star", "isoscore", "mean-cosine"])
def test_it_is_what_measure_says_of_the_same_rows(probed, site, layer, name):
    held, batches, found = probed
    rows, _ = rows_of(held, batches, layer)
    (known,) = measure(rows, measures=[name])
    (reading,) = [each for each in found if (each.site, each.measure) == (site, name)]
    assert (reading.n, reading.d) == (known.n, known.d)
    # Blocks of float32 are cut at other places.
    assert reading.value == pytest.approx(known.value, rel=1e-4)


def test_every_layer_and_all_of_them_have_every_measure(probed):
    *_, found = probed
    sites = {each.site for each in found}
    assert sites == {"resid.0", "resid.1", "resid.2", LAYERS}
    assert {(e.site, e.measure) for e in found} == {(s, m) for s in sites for m in MEASURES}
    assert {e.variant for e in found} == {"all"}


def test_padding_does_not_change_it(probed):
    held, _, found = probed
    alone = [held.batch(held.test, [place]) for place in range(32)]
    single = geometry(held.subject, alone, zeta=0.2)
    for one, other in zip(found, single, strict=True):
        assert one.n == other.n
        if one.measure != "twonn":  # neighbours of nearly equal distance change places
            assert other.value == pytest.approx(one.value, rel=1e-3, abs=1e-5)
