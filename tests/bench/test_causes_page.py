"""The page of causes says what the committed results say."""

import json
import re

import pytest


@pytest.fixture
def module(script):
    script("real_page")
    return script("causes_page")


def test_the_page_is_made_of_the_results(module):
    text = module.PAGE.read_text()
    assert module.page(text) == text


def test_every_study_was_explained(module, script):
    wanted = {study.name for study in script("real").STUDIES if study.causes}
    assert {path.parent.name for path in module.RESULTS.glob("*/causes.json")} == wanted


def test_the_shares_of_every_site_add_up_to_one(module):
    for study in module.MODELS:
        sites = {}
        for each in module.found(study)["causes"]:
            sites.setdefault(each["site"], []).append(each["share"])
        assert len(sites) > 4
        for shares in sites.values():
            assert sum(shares) == pytest.approx(1)


def test_a_changed_result_would_be_noticed(module, monkeypatch):
    monkeypatch.setitem(module.TABLES, "causes-minilm", lambda: "something else")
    text = module.PAGE.read_text()
    assert module.page(text) != text


def test_nothing_is_left_to_be_written(module):
    """Words in capitals with an underscore were places for what had yet to be measured."""
    assert not re.findall(r"\b[A-Z]+_[A-Z]+\b", module.PAGE.read_text())


def test_what_is_zeroed_is_of_the_model_that_speaks(module):
    kept = json.loads((module.RESULTS / "smollm" / "causes.json").read_text())["zeroed"]
    assert all(each["kl"] >= 0 for each in kept["dimensions"])
