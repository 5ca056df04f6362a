"""What the listener hands on adds up to the rows it heard, whatever the batches were."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from isoscope.accumulate import ArrayBlock, Moments, Tally
from isoscope.accumulate.survey import Survey
from isoscope.capture.feed.base import Marks
from isoscope.capture.listener import Listener, NotAlikeError, sinks, times_median
from isoscope.hashing import named_documents


class Batch:
    """Documents of given lengths, each beginning with a special token."""

    def __init__(self, names, lengths):
        self.documents = tuple(names)
        self.lengths = lengths

    def marks(self, prefix, length):
        real = torch.arange(length)[None] < torch.tensor(self.lengths)[:, None]
        special = torch.zeros_like(real)
        special[:, 0] = True
        return Marks(real, special & real, None)


def heard(documents, batches, **given):
    """Return a survey of documents (name: rows) heard in batches of names."""
    survey, spoilt = Survey(), []
    listener = Listener(
        lambda site, row_class, block: survey.update(
            (site, row_class), (Tally, Moments), block
        ),
        lambda *told: spoilt.append(told),
        **given,
    )
    for names in batches:
        rows = [torch.from_numpy(documents[name]) for name in names]
        padded = torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=torch.nan
        )
        listener.begin(Batch(names, [len(each) for each in rows]))
        listener.hear("resid.0", padded)
    return survey, spoilt


@pytest.fixture
def documents():
    rng = np.random.default_rng(0)
    return {f"d{i}": rng.normal(size=(3 + i % 7, 5)).astype(np.float32) + 2 for i in range(20)}


def test_batches_do_not_matter(documents):
    names = list(documents)
    alone, _ = heard(documents, [[name] for name in names])
    together, _ = heard(documents, [names[:13], names[13:]])
    for place, kinds in alone.held.items():
        for kind, part in kinds.items():
            for name, array in part.state().items():
                np.testing.assert_allclose(
                    together.held[place][kind].state()[name], array, rtol=1e-5, atol=1e-4
                )


def test_rows_are_those_of_the_documents(documents):
    survey, _ = heard(documents, [list(documents)])
    rows = np.concatenate([each[1:] for each in documents.values()])
    names = [name for name, each in documents.items() for _ in each[1:]]
    block = ArrayBlock(
        rows, named_documents(np.array(names)), np.arange(len(rows), dtype=np.uint64)
    )
    plain = Moments(5)
    plain.update(block)
    ours = survey.held["resid.0", "ordinary"][Moments].finalize()
    np.testing.assert_allclose(ours.covariance, plain.finalize().covariance, rtol=1e-5)
    assert survey.held["resid.0", "special"][Tally].count == 20


def test_sinks_have_a_class_of_their_own(documents):
    documents["d3"][2] *= 100
    documents["d4"][0] *= 100
    survey, _ = heard(documents, [list(documents)])
    counts = {place[1]: kinds[Tally].count for place, kinds in survey.held.items()}
    assert counts["sink"] == 1
    assert counts["special-sink"] == 1


def test_a_site_that_says_nan_is_given_up_and_named(documents):
    documents["d5"][1, 2] = np.nan
    survey, spoilt = heard(documents, [[name] for name in documents])
    assert spoilt == [("resid.0", "position 1 of document 'd5'")]
    assert survey.held["resid.0", "ordinary"][Tally].count < sum(map(len, documents.values()))


def test_encoder_and_decoder_have_their_own_marks():
    asked = []

    class Both(Batch):
        def marks(self, prefix, length):
            asked.append((prefix, length))
            return super().marks(prefix, length)

    listener = Listener(lambda *_: None, lambda *_: None)
    listener.begin(Both(["a"], [2]))
    for site in ("enc.resid.0", "enc.resid.1", "dec.resid.0", "encore.0"):
        listener.hear(site, torch.randn(1, 3 if site.startswith("dec") else 4, 6))
    assert asked == [("enc", 4), ("dec", 3), ("", 4)]


def test_half_precision_is_measured_in_single(documents):
    survey = Survey()
    listener = Listener(
        lambda site, row_class, block: survey.update((site, row_class), (Moments,), block),
        lambda *_: None,
    )
    listener.begin(Batch(["a", "b"], [4, 4]))
    rows = torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(0)).bfloat16()
    listener.hear("resid.0", rows)
    moments = survey.held["resid.0", "ordinary"][Moments].finalize()
    expected = np.cov(rows[:, 1:].reshape(-1, 6).float().numpy().T)
    np.testing.assert_allclose(moments.covariance, expected, rtol=1e-4, atol=1e-5)


def test_blocks_carry_the_tokens_of_their_rows(documents):
    class Told(Batch):
        def marks(self, prefix, length):
            marks = super().marks(prefix, length)
            tokens = torch.arange(len(self.lengths) * length).reshape(-1, length)
            return replace(marks, tokens=tokens)

    heard_blocks = []
    listener = Listener(
        lambda _site, row_class, block: heard_blocks.append((row_class, block)),
        lambda *_: None,
        bands=np.arange(100, dtype=np.int8) % 5,
    )
    listener.begin(Told(["a", "b"], [3, 2]))
    listener.hear("resid.0", torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0)))
    found = {row_class: block for row_class, block in heard_blocks}
    assert found["ordinary"].tokens.tolist() == [1, 2, 4]
    assert found["special"].tokens.tolist() == [0, 3]
    assert found["ordinary"].frequency.tolist() == [1, 2, 4]


def test_sinks_say_how_strong_they_are_and_in_which_words_they_stand():
    class Told(Batch):
        def marks(self, prefix, length):
            marks = super().marks(prefix, length)
            tokens = torch.arange(len(self.lengths) * length).reshape(-1, length)
            return replace(marks, tokens=tokens)

    found = {}
    listener = Listener(
        lambda _site, row_class, block: found.update({row_class: block}),
        lambda *_: None,
        decode=lambda tokens: " ".join(f"t{each}" for each in tokens),
    )
    listener.begin(Told(["a", "b"], [3, 4]))
    rows = torch.ones(2, 4, 5)
    rows[1, 2] = 40
    listener.hear("resid.0", rows)
    sinks = found["sink"].sinks
    assert sinks.times.tolist() == pytest.approx([40])
    assert sinks.quote(0) == ("t6", "t4 t5 t6 t7")
    assert found["ordinary"].sinks is None


def test_sinks_without_a_tokenizer_have_no_words():
    found = {}
    listener = Listener(
        lambda _site, row_class, block: found.update({row_class: block}), lambda *_: None
    )
    listener.begin(Batch(["a"], [4]))
    rows = torch.ones(1, 4, 5)
    rows[0, 2] = 40
    listener.hear("resid.0", rows)
    assert found["sink"].sinks.quote(0) == ("", "")


def repeated(passes, *, serves=True):
    """Return what was taken and what repeated; a pass is a list of (site, tensor)."""
    taken, repeats = [], []

    def repeat(site, source):
        repeats.append((site, source))
        return serves

    listener = Listener(
        lambda site, row_class, block: taken.append((site, len(block))),
        lambda *_: None,
        repeat=repeat,
    )
    for number, sites in enumerate(passes):
        listener.begin(Batch([f"a{number}", f"b{number}"], [4, 4]))
        for site, tensor in sites:
            listener.hear(site, tensor)
    listener.finish()
    return taken, repeats


def tensor_of(seed):
    return torch.randn(2, 4, 6, generator=torch.Generator().manual_seed(seed))


def test_a_tensor_heard_at_two_sites_is_passed_on_once():
    passes = [
        [("norm.in", tensor_of(5)), ("norm.out", each), ("resid.5", each.detach())]
        for each in (tensor_of(0), tensor_of(1))
    ]
    taken, repeats = repeated(passes)
    assert {site for site, _ in taken} == {"norm.in", "norm.out"}
    assert repeats == [("resid.5", "norm.out")]  # asked once, then it is so in every batch


def test_a_site_that_needs_summaries_of_its_own_gets_them():
    same = tensor_of(0)
    taken, _ = repeated([[("norm.out", same), ("resid.5", same)]], serves=False)
    assert {site for site, _ in taken} == {"norm.out", "resid.5"}


@pytest.mark.parametrize("change", ["add_", "neg_", "mul_"])
def test_a_tensor_that_was_written_to_is_another(change):
    tensor, taken = tensor_of(0), []
    listener = Listener(
        lambda site, *_: taken.append(site), lambda *_: None, repeat=lambda *_: True
    )
    listener.begin(Batch(["a", "b"], [4, 4]))
    listener.hear("norm.out", tensor)
    getattr(tensor, change)(*([] if change == "neg_" else [2.0]))
    listener.hear("resid.5", tensor)
    assert set(taken) == {"norm.out", "resid.5"}


def test_an_equal_tensor_elsewhere_in_memory_is_another():
    taken, repeats = repeated([[("norm.out", tensor_of(0)), ("resid.5", tensor_of(0).clone())]])
    assert {site for site, _ in taken} == {"norm.out", "resid.5"}
    assert repeats == []


def test_what_begins_in_a_later_batch_is_passed_on():
    same = tensor_of(0)
    apart = [("norm.out", tensor_of(1)), ("resid.5", tensor_of(2))]
    taken, repeats = repeated([apart, [("norm.out", same), ("resid.5", same)]])
    assert sum(site == "resid.5" for site, _ in taken) == 4  # two classes of rows, twice
    assert repeats == []


@pytest.mark.parametrize(
    "later",
    [
        [("norm.out", tensor_of(1)), ("resid.5", tensor_of(2))],
        [("norm.out", tensor_of(1))],
        [("resid.5", tensor_of(1))],
    ],
    ids=["another tensor", "one site is missing", "the other is missing"],
)
def test_sites_that_part_later_are_reported(later):
    same = tensor_of(0)
    with pytest.raises(NotAlikeError, match=r"resid\.5"):
        repeated([[("norm.out", same), ("resid.5", same)], later])


def test_a_sink_is_found_by_the_median_of_all_real_norms():
    rng = np.random.default_rng(4)
    for length in (1, 2, 3, 4, 7, 10):
        norms = torch.from_numpy(rng.exponential(size=(6, length)).astype(np.float32))
        real = torch.from_numpy(rng.random((6, length)) < 0.7)
        real[0] = False
        found = times_median(norms, real)
        for row in range(1, 6):
            kept = norms[row][real[row]].double().numpy()
            if len(kept):
                wanted = norms[row].numpy() / np.median(kept)
                np.testing.assert_allclose(found[row].numpy(), wanted, rtol=1e-6)
    assert not sinks(norms, real)[0].any()


def test_of_an_even_number_of_norms_the_two_in_the_middle_count():
    norms = torch.tensor([[1.0, 1.0, 3.0, 15.0]])
    real = torch.ones_like(norms, dtype=torch.bool)
    assert sinks(norms, real, times=10.0).tolist() == [[False] * 4]  # 15 < 10 * 2
    assert sinks(norms, real, times=7.0).tolist() == [[False, False, False, True]]


def test_norms_that_are_no_number_are_not_in_the_median():
    norms = torch.tensor([[1.0, torch.nan, 3.0, torch.nan, torch.inf]])
    real = torch.ones_like(norms, dtype=torch.bool)
    assert times_median(norms, real)[0, :1].tolist() == [pytest.approx(1 / 3)]
