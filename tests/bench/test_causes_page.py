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


def test_the_shares_by_dependence_add_up_to_one_at_every_site(module):
    explained = [study for study in module.MODELS if module.by_site(study, "removal")]
    assert "minilm" in explained
    for study in explained:
        sites = module.by_site(study, "dependence")
        assert len(sites) > 4
        for here in sites.values():
            assert sum(each["share"] for each in here.values()) == pytest.approx(1)


def test_a_changed_result_would_be_noticed(module, monkeypatch):
    monkeypatch.setitem(module.TABLES, "removed-minilm", lambda: "something else")
    text = module.PAGE.read_text()
    assert module.page(text) != text


def test_nothing_is_left_to_be_written(module):
    """Words in capitals with an underscore were places for what had yet to be measured."""
    assert not re.findall(r"\b[A-Z]+_[A-Z]+\b", module.PAGE.read_text())


def test_what_is_zeroed_is_of_the_model_that_speaks(module):
    kept = json.loads((module.RESULTS / "smollm" / "causes.json").read_text())["zeroed"]
    assert all(each["kl"] >= 0 for each in kept["dimensions"])
