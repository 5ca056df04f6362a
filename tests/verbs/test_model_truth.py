"""Every reading of a survey is what `measure` gives on the activations a plain hook stores."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from isoscope.accumulate import Block
from isoscope.accumulate.hashing import named_documents
from isoscope.source.corpus import open_corpus
from isoscope.survey import SECOND_PASS, Survey, kinds_for
from isoscope.verbs import measure, survey
from isoscope.verbs.answer import chosen
from isoscope.verbs.model import opened

VARIANTS = ("all", "no-special", "no-sink")


def stored(folder, texts, module_of, sites):
    """Return rows, document, position and special of each site, one document at a time.

    Nothing of the package takes part: the tokenizer, the model and a hook are all there is.
    """
    found = opened(folder)
    tokenizer, body = found.loaded.tokenizer, found.loaded.body
    kept = {site: [] for site in sites}
    marks = []
    handles = [
        body.get_submodule(module_of[site]).register_forward_hook(
            lambda _module, _inputs, output, site=site: kept[site].append(
                (output[0] if isinstance(output, tuple) else output)[0].clone()
            )
        )
        for site in sites
    ]
    for number, text in enumerate(texts):
        given = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        special = given.pop("special_tokens_mask")[0].bool().numpy()
        with torch.inference_mode():
            body(**given)
        marks += [(number, place, mark) for place, mark in enumerate(special)]
    for handle in handles:
        handle.remove()
    number, place, special = (np.array(column) for column in zip(*marks, strict=True))
    rows = {site: torch.cat(parts).float().numpy() for site, parts in kept.items()}
    return rows, number, place.astype(np.uint64), special


def sinks(rows, number):
    norms = np.linalg.norm(rows, axis=1)
    median = {
        n: np.sort(norms[number == n])[(np.sum(number == n) - 1) // 2] for n in set(number)
    }
    return norms > 10 * np.array([median[n] for n in number])


def expected(rows, number, place, kept, names):
    """Return what the rows that are kept read, with their own places in their documents."""
    ids = np.array([f"memory:{n}" for n in number])
    if kept.all():
        return {r.measure: r for r in measure(rows, document=ids, measures=names)}
    keys = named_documents(ids[kept])
    block = Block(rows[kept], keys, place[kept])
    first = [kind for kind in kinds_for(names) if kind not in SECOND_PASS]
    whole = Survey()
    whole.update(("x", "all"), first, block)
    second = [kind for kind in kinds_for(names) if kind in SECOND_PASS]
    start = whole.second_kinds(("x", "all"), second)
    for part in start.values():
        part.update(block)
    whole.held["x", "all"].update(start)
    return {r.measure: r for r in whole.read(names, documents=True)}


def agree(found, wanted):
    """Compare value and interval, to 1e-5 relative or 1e-6 absolute."""
    assert found.n == wanted.n
    assert found.d == wanted.d
    for name in ("value", "low", "high"):
        ours, theirs = getattr(found, name), getattr(wanted, name)
        assert (ours is None) == (theirs is None), (found, wanted)
        if ours is not None:
            assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6), (name, found, wanted)


def compared(folder, texts, module_of, *, every=True, **given):
    """Compare a survey with what was stored; return how many readings were compared."""
    names = chosen(None, all=every)
    found = survey(
        folder, texts, sites=list(module_of), tokens=None, all=every, batch=7, **given
    )
    rows, number, place, special = stored(folder, texts, module_of, list(module_of))
    compared = 0
    for site in module_of:
        sink = sinks(rows[site], number)
        masks = dict(zip(VARIANTS, (sink | True, ~special, ~sink), strict=True))
        for variant in VARIANTS:
            kept = masks[variant]
            wanted = expected(rows[site], number, place, kept, names)
            ours = [r for r in found if (r.site, r.variant) == (site, variant)]
            assert {r.measure for r in ours} == set(wanted)
            for reading in ours:
                agree(replace(reading, site="x"), wanted[reading.measure])
                compared += 1
    return compared


def test_a_small_random_model_reads_as_its_stored_rows(tiny, texts):
    module_of = {f"resid.{n}": f"encoder.layer.{n}" for n in range(3)}
    assert compared(tiny, texts, module_of) > 150


@pytest.mark.real
@pytest.mark.timeout(600)
def test_minilm_reads_as_its_stored_rows(minilm, texts):
    module_of = {f"resid.{n}": f"encoder.layer.{n}" for n in (0, 3, 5)}
    module_of["norm.out"] = "encoder.layer.5.output.LayerNorm"
    assert compared(minilm, texts, module_of) > 200


@pytest.mark.real
@pytest.mark.timeout(600)
def test_smollm_reads_as_its_stored_rows(smollm):
    # More rows than dimensions: what float32 leaves of variances that are zero is noise,
    # which RankMe takes for dimensions.
    texts = [open_corpus().document(ordinal).content for ordinal in range(36)]
    module_of = {f"resid.{n}": f"layers.{n}" for n in (0, 15, 29)}
    module_of["norm.out"] = "norm"
    assert compared(smollm, texts, module_of, every=False) > 150
