"""The page of real models says what the committed readings say."""

import pytest


def test_the_page_is_made_of_the_readings(script):
    module = script("real_page")
    text = module.PAGE.read_text()
    assert module.page(text) == text


def test_every_study_has_its_readings(script):
    wanted = {study.name for study in script("real").STUDIES}
    kept = {path.parent.name for path in script("real_page").RESULTS.glob("*/readings.parquet")}
    assert kept == wanted


def test_a_changed_reading_would_be_noticed(script, monkeypatch):
    module = script("real_page")
    monkeypatch.setitem(module.TABLES, "minilm", lambda: "something else")
    text = module.PAGE.read_text()
    assert module.page(text) != text
    with pytest.raises(SystemExit, match="no place"):
        script("markdown_table").filled(text, "nowhere", "")


def test_what_the_page_says_in_words_is_true_of_the_readings(script):
    module = script("real_page")
    minilm = module.readings("minilm")
    cosine = {
        site: minilm[site, "all", module.COSINE].value for site in ("norm.in", "norm.out")
    }
    assert cosine["norm.in"] > 4 * cosine["norm.out"]
