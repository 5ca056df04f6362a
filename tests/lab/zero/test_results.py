"""zero: the KL of the lab beside that of random dimensions."""

import json
from dataclasses import replace

import numpy as np
import pytest

import isoscope as iso
from isoscope.errors import ConfigError, UndefinedError, UnknownNameError
from isoscope.lab.zero.results import FEW
from isoscope.study.model import subject_of


def test_it_is_what_the_lab_says_and_how_many_times_random(speaker, texts):
    subject = subject_of(speaker)
    found = iso.zero(subject, texts, documents=12)
    mean = np.mean([each.kl for each in found if each.chosen == "random"])
    assert [each.times_random for each in found] == pytest.approx(
        [each.kl / mean for each in found]
    )
    (table,) = found.tables
    assert [row[0] for row in table.rows] == [str(each.dimension) for each in found]
    assert [row[1] for row in table.rows] == ["top"] * 3 + ["random"] * 3
    assert "zeroed in ln_f; 12 documents" in table.caption


def test_weights_are_untouched(speaker, texts):
    subject = subject_of(speaker)
    model = subject.loaded.model
    before = {name: each.numpy().tobytes() for name, each in model.state_dict().items()}
    iso.zero(subject, texts, documents=4, norms=2)
    assert {n: each.numpy().tobytes() for n, each in model.state_dict().items()} == before


def test_given_dimensions_stand_beside_random_ones(speaker, texts):
    found = iso.zero(speaker, texts, dimensions=[5], random=2, documents=8)
    assert [each.chosen for each in found] == ["given", "random", "random"]
    alone = iso.zero(speaker, texts, dimensions=[5], random=0, documents=8)
    assert replace(found[0], times_random=None) == alone[0]
    assert alone[0].times_random is None
    assert "to random" not in str(alone)


def test_records_say_what_was_zeroed(speaker, texts):
    found = iso.zero(speaker, texts, dimensions=[5], norms=2, documents=8)
    first = json.loads(found.to_json().splitlines()[0])
    assert list(first) == [
        "model", "norms", "documents", "tokens", "d",
        "dimension", "chosen", "share", "kl", "low", "high", "times_random",
    ]  # fmt: skip
    assert first["norms"] == ["h.1.ln_1", "h.1.ln_2", "h.2.ln_1", "h.2.ln_2"]
    assert "zeroed in h.1.ln_1, h.1.ln_2 and 2 more" in str(found)


def test_few_documents_are_warned_of(speaker, texts):
    found = iso.zero(speaker, texts, documents=3)
    assert found.remarks == (FEW,)
    assert "95 % interval" not in str(found)


def test_a_column_of_a_table_is_read(speaker, texts, tmp_path):
    rows = [json.dumps({"body": text}) for text in texts]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    given = {"dimensions": [5], "random": 0, "documents": 40}
    table = iso.zero(speaker, tmp_path / "a.jsonl", column="body", **given)
    assert table[0].kl == pytest.approx(iso.zero(speaker, texts, **given)[0].kl, rel=1e-4)


@pytest.mark.parametrize(
    ("given", "kind", "slug"),
    [
        ({"dimensions": [24]}, ConfigError, "dimension-range"),
        ({"norms": "ln_q"}, UnknownNameError, "unknown-norm"),
        ({"norms": 9}, ConfigError, "number-range"),
        ({"seed": -1}, ConfigError, "seed"),
    ],
)
def test_bad_settings_are_refused(speaker, texts, given, kind, slug):
    with pytest.raises(kind) as raised:
        iso.zero(speaker, texts, **given)
    assert raised.value.slug == slug


def test_a_model_without_a_head_says_so(tiny, texts):
    with pytest.raises(UndefinedError) as raised:
        iso.zero(tiny, texts)
    assert raised.value.slug == "no-output-distribution"
