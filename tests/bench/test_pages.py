"""The tables of the docs say what the committed results say."""


def test_no_page_differs_from_the_results(script):
    assert script("pages").differing(write=False) == []


def test_a_changed_result_would_be_noticed(script, monkeypatch):
    module = script("pages")
    monkeypatch.setitem(module.TABLES, "statistics.md", {"bias": lambda: "something else"})
    assert module.differing(write=False) == ["statistics.md"]
