"""Surveys that are compared with each other find their clusters from one start, not four."""

import pytest


@pytest.fixture(autouse=True)
def one_start(monkeypatch):
    """Let k-means be quick: tests/measures/view/test_clusters.py is about what it finds."""
    monkeypatch.setattr("isoscope.measures.view.clusters._STARTS", 1)
