"""Batches go through a model, also side by side; halves of them in the same order."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isoscope.accumulate import Groups, Moments, Reservoir, Tally
from isoscope.accumulate.survey import Survey
from isoscope.capture.feed import feed_for
from isoscope.capture.listener import Listener
from isoscope.capture.model.pooling import Pooling
from isoscope.capture.runner import (
    ChangesItselfError,
    Runner,
    halve,
    is_out_of_memory,
    threads,
)
from isoscope.errors import ConfigError
from isoscope.hashing import named_documents
from isoscope.study.model import load_model


@given(
    sizes=st.lists(st.integers(1, 40), max_size=5),
    times=st.integers(0, 7),
)
def test_halves_are_the_same_documents_in_the_same_order(sizes, times):
    numbers = iter(range(sum(sizes)))
    batches = [[next(numbers) for _ in range(size)] for size in sizes]
    parts = list(halve(batches, times))
    assert [each for part in parts for each in part] == list(range(sum(sizes)))
    assert all(parts)
    assert all(len(part) <= -(-max(sizes) // 2**times) for part in parts)


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (MemoryError(), True),
        (torch.OutOfMemoryError("CUDA out of memory"), True),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 9 bytes"),
            True,
        ),
        (RuntimeError("MPS backend out of memory"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_lack_of_memory_is_distinguished_from_faults(error, short):
    assert is_out_of_memory(error) is short


@pytest.fixture(scope="module")
def found(tiny):
    return load_model(tiny)


def documents(texts):
    return [SimpleNamespace(id=f"d{n}", content=t, place="") for n, t in enumerate(texts)]


def heard(found, batches, sites, **how):
    survey, pooled, told = Survey(), [], []

    def take(site, row_class, block):
        survey.update((site, row_class), (Tally,), block)
        if site == "pooled":
            pooled.append(block.tensor.clone())

    listener = Listener(take, survey.drop)
    feed = feed_for(found.loaded)
    runner = Runner(found.loaded.body, found.sites, feed, **how)
    prepared = [[feed.prepare(each) for each in batch] for batch in batches]
    runner.run(sites, prepared, listener, told.append)
    return survey, pooled, told


def test_every_position_of_every_site_is_captured_once(found, texts):
    given = documents(texts[:6])
    survey, _, told = heard(found, [given[:4], given[4:]], ["embed", "resid.2", "q.0.1"])
    words = sum(len(each.content.split()) for each in given)
    assert told == [
        sum(len(e.content.split()) + 2 for e in part) for part in (given[:4], given[4:])
    ]
    for site in ("embed", "resid.2", "q.0.1"):
        assert survey.held[site, "ordinary"][Tally].count == words
        assert survey.held[site, "special"][Tally].count == 12


@pytest.mark.parametrize("lanes", [1, 2])
def test_what_the_model_does_to_make_documents_ready_is_not_heard(found, texts, lanes):
    body, feed = found.loaded.body, feed_for(found.loaded)
    survey, rows = Survey(), []
    prepared = [feed.prepare(each) for each in documents(texts[:6])]
    other = feed.batch(prepared[:2]).inputs

    def ready():
        for start in range(0, 6, 2):
            with torch.inference_mode():
                body(**other)  # as a speech model that writes a transcript
            yield prepared[start : start + 2]

    def take(site, row_class, block):
        survey.update((site, row_class), (Tally,), block)
        rows.append(len(block))

    listener = Listener(take, survey.drop)
    Runner(body, found.sites, feed).run(["resid.0"], ready(), listener, lanes=lanes)
    assert sum(rows) == sum(each.length for each in prepared)


def test_no_hook_is_left_behind(found, texts):
    hooks = lambda: sum(len(m._forward_hooks) + len(m._forward_pre_hooks)  # noqa: E731
                        for m in found.loaded.body.modules())  # fmt: skip
    before = hooks()
    heard(found, [documents(texts[:2])], ["resid.0"])

    def fail(*_):
        raise KeyError("stop")

    listener = Listener(fail, lambda *_: None)
    feed = feed_for(found.loaded)
    runner = Runner(found.loaded.body, found.sites, feed)
    with pytest.raises(KeyError):
        runner.run(
            ["resid.0"], [[feed.prepare(each) for each in documents(texts[:2])]], listener
        )
    assert hooks() == before


def test_documents_too_short_are_passed_over(found):
    survey, _, told = heard(found, [documents([""]), documents(["the river"])], ["resid.0"])
    assert told == [4]
    assert survey.held["resid.0", "ordinary"][Tally].count == 2


def test_pooled_vectors_are_those_of_the_real_tokens(found, texts):
    given = documents(texts[:5])
    _, (vectors,), _ = heard(
        found, [given], ["pooled"], pooling=Pooling(mode="mean"), truncate=7
    )
    assert vectors.shape == (5, 7)
    for each, vector in zip(given, vectors, strict=True):
        alone = found.loaded.tokenizer(each.content, return_tensors="pt")
        with torch.inference_mode():
            states = found.loaded.body(**alone).last_hidden_state[0]
        np.testing.assert_allclose(vector, states.mean(dim=0)[:7], atol=1e-5)


def test_positions_that_come_first_are_refused(found, texts):
    listener = Listener(lambda *_: None, lambda *_: None)
    feed = feed_for(found.loaded)
    batch = feed.batch([feed.prepare(each) for each in documents(texts[:3])])
    listener.begin(batch)
    length = batch.inputs["input_ids"].shape[1]
    with pytest.raises(
        ConfigError, match="expected 3 documents along the first axis"
    ) as caught:
        listener.hear("resid.0", torch.zeros(length, 3, 8))
    assert caught.value.slug == "positions-unknown"


def state_of(found, batches, lanes, sites=("embed", "resid.0", "resid.2")):
    """Return every array of a survey of batches that run in lanes."""
    survey = Survey()

    def take(site, row_class, block):
        survey.update((site, row_class), (Moments, Groups, Reservoir), block)

    listener = Listener(take, survey.drop, lambda *_: None, gather=True)
    feed = feed_for(found.loaded)
    prepared = [[feed.prepare(each) for each in batch] for batch in batches]
    with threads(1):
        runner = Runner(found.loaded.body, found.sites, feed)
        runner.run(list(sites), prepared, listener, lanes=lanes)
    survey.sort(sites)
    return survey.to_state()


def test_batches_side_by_side_give_the_sums_of_one_after_the_other(found, texts):
    given = documents(texts * 3)
    batches = [given[start : start + 4] for start in range(0, len(given), 4)]
    meta, arrays = state_of(found, batches, 1)
    for lanes in (2, 3):
        beside, others = state_of(found, batches, lanes)
        assert beside == meta
        for name, array in arrays.items():
            np.testing.assert_array_equal(others[name], array, err_msg=name)


def test_vectors_of_few_documents_wait_for_those_of_later_batches():
    rows, taken = torch.randn(6, 5), []
    listener = Listener(lambda *each: taken.append(each), lambda *_: None, gather=True)
    for start in range(0, 6, 2):
        listener.begin(SimpleNamespace(documents=(f"a{start}", f"a{start + 1}")))
        listener.hear_whole("pooled", rows[start : start + 2])
        assert not taken
    listener.finish()
    ((site, row_class, block),) = taken
    assert (site, row_class, block.independent) == ("pooled", "all", True)
    np.testing.assert_array_equal(block.rows[np.arange(6)], rows.numpy())
    keys = named_documents(np.array([f"a{number}" for number in range(6)]))
    np.testing.assert_array_equal(block.documents, keys)


@pytest.mark.parametrize("lanes", [1, 2])
def test_the_error_of_a_batch_ends_the_others(found, texts, lanes):
    given = documents(texts)
    passes = []

    def fail(_site, _row_class, block):
        passes.append(len(block))
        raise KeyError("stop")

    listener, feed = Listener(fail, lambda *_: None), feed_for(found.loaded)
    prepared = [[feed.prepare(each)] for each in given]
    running = threading.active_count()
    with pytest.raises(KeyError, match="stop"):
        Runner(found.loaded.body, found.sites, feed).run(
            ["resid.0"], prepared, listener, lanes=lanes
        )
    assert len(passes) <= lanes
    assert threading.active_count() == running


@pytest.mark.parametrize("how", ["attribute", "in place", "new buffer"])
def test_a_model_that_changes_itself_is_not_run_side_by_side(tiny, texts, how):
    found = load_model(tiny)
    body, feed = found.loaded.body, feed_for(found.loaded)
    body.register_buffer("longest", torch.zeros(1), persistent=False)

    def change(*_):
        if how == "attribute":
            body.seen = getattr(body, "seen", 0) + 1
        elif how == "in place":
            body.longest.add_(1)
        else:
            body.longest = body.longest + 1

    handle = body.register_forward_pre_hook(change)
    prepared = [[feed.prepare(each)] for each in documents(texts[:3])]
    runner = Runner(body, found.sites, feed)
    listener = Listener(lambda *_: None, lambda *_: None)
    with pytest.raises(ChangesItselfError):
        runner.run(["resid.0"], prepared, listener, lanes=2)
    runner.run(["resid.0"], prepared, Listener(lambda *_: None, lambda *_: None))
    handle.remove()
