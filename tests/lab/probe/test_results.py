"""probe: the classifier of the lab, with labels from wherever they are."""

import json

import pytest

import isoscope as iso
from isoscope.errors import ConfigError, TooFewRowsError, UndefinedError, UnknownNameError
from isoscope.lab.probe.one_dimension import best_dimension
from isoscope.lab.probe.results import NO_BETTER
from isoscope.lab.probe.worker import states_of
from isoscope.source.corpus import open_corpus
from isoscope.study.model import subject_of


def is_long(text):
    return "long" if len(text.split()) > 15 else "short"


@pytest.fixture
def reviews(tmp_path, texts):
    rows = [{"text": t, "size": is_long(t), "five": n % 5} for n, t in enumerate(texts)]
    path = tmp_path / "reviews.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_it_is_what_the_lab_says(tiny, texts, reviews):
    found = iso.probe(tiny, reviews, "size", sites=["resid.0", "norm.out"], at="mean")
    labels = [is_long(text) for text in texts]
    for each, site in zip(found, ("resid.0", "norm.out"), strict=True):
        states = states_of(subject_of(tiny), open_corpus(texts), site=site, at="mean")
        assert each.rule == best_dimension(states.rows, labels)
        assert (each.site, each.at) == (site, "mean")
    record = found.to_dict()[0]
    assert record["model"] == tiny.name
    assert {"site", "at", "dimension", "accuracy", "low", "high", "majority"} <= record.keys()


def test_the_table_has_accuracy_interval_baseline_and_rule(tiny, reviews):
    found = iso.probe(tiny, reviews, "size", sites=["resid.0"], at="mean")
    (table,) = found.tables
    row = dict(zip([c.head for c in table.columns], table.rows[0], strict=True))
    told = found[0].rule
    assert row["dimension"] == str(told.dimension)
    assert row["majority"] == f"{100 * told.majority:.1f} %"
    assert row["rule"].startswith(f"{told.above} if > ")
    assert row["rule"].endswith(f", else {told.below}")
    assert "chosen on 20 documents, accuracy on 20 others" in table.caption


def test_labels_may_be_a_list_a_file_or_one_against_the_rest(tiny, texts, reviews, tmp_path):
    labels = [is_long(text) for text in texts]
    (tmp_path / "labels.txt").write_text("\n".join(labels))
    column = iso.probe(tiny, reviews, "size")
    assert iso.probe(tiny, texts, labels)[0].rule == column[0].rule
    assert iso.probe(tiny, texts, tmp_path / "labels.txt")[0].rule == column[0].rule
    against = iso.probe(tiny, reviews, "five", positive="3")[0].rule
    assert {against.above, against.below} == {"3", "not 3"}


def test_labels_that_tell_nothing_are_warned_of(tiny, texts):
    found = iso.probe(tiny, texts, [n % 2 for n in range(40)])
    assert not found[0].is_better
    assert found.remarks == (f"{NO_BETTER}norm.out",)


def test_hostile_labels_are_harmless(tiny, texts):
    labels = ["\x1b[2J" if len(text) > 80 else "b" for text in texts]
    text = str(iso.probe(tiny, texts, labels))
    assert "\x1b" not in text and "\\x1b[2J" in text


def test_documents_that_are_too_short_are_counted(speaker, texts):
    documents = ["river", *texts]
    labels = ["short", *(is_long(text) for text in texts)]
    found = iso.probe(speaker, documents, labels)
    assert "documents of fewer than two tokens skipped: 1" in found.remarks
    assert found[0].at == "last"


def test_as_published_takes_the_dimension_of_largest_variance(tiny, texts):
    labels = [is_long(text) for text in texts]
    told = iso.probe(tiny, texts, labels, as_published=True)[0].rule
    states = states_of(subject_of(tiny), open_corpus(texts))
    assert told == best_dimension(states.rows, labels, as_published=True)


@pytest.mark.parametrize(
    ("label", "given", "kind", "slug"),
    [
        ([0, 1] * 19, {}, ConfigError, "labels-mismatch"),
        ([0, 1, 2, 3] * 10, {}, UndefinedError, "labels-binary"),
        ([0] * 40, {}, UndefinedError, "labels-binary"),
        ([0] * 37 + [1] * 3, {}, TooFewRowsError, "labels-few"),
        ([0, 1] * 20, {"positive": "2"}, UnknownNameError, "unknown-label"),
        ([0, 1] * 20, {"seed": -1}, ConfigError, "seed"),
    ],
)
def test_bad_labels_are_refused_before_a_model_is_loaded(texts, label, given, kind, slug):
    with pytest.raises(kind) as raised:
        iso.probe("./no-model", texts, label, **given)
    assert raised.value.slug == slug


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ({"sites": ["resid.9"]}, "unknown-site"),
        ({"at": "end"}, "unknown-place-of-a-state"),
        ({"test": 1.0}, "number-range"),
    ],
)
def test_bad_settings_are_refused(tiny, texts, given, slug):
    with pytest.raises((ConfigError, UnknownNameError)) as raised:
        iso.probe(tiny, texts, [0, 1] * 20, **given)
    assert raised.value.slug == slug
