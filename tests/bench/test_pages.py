"""The tables of the docs say what the committed results say."""

import importlib.util
from pathlib import Path

PAGES = Path(__file__).parents[2] / "bench" / "pages.py"


def pages():
    spec = importlib.util.spec_from_file_location("pages", PAGES)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_differs_from_the_results():
    assert pages().differing(write=False) == []


def test_a_changed_result_would_be_noticed(monkeypatch):
    module = pages()
    monkeypatch.setitem(module.TABLES, "statistics.md", {"bias": lambda: "something else"})
    assert module.differing(write=False) == ["statistics.md"]
