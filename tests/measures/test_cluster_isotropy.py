"""Cluster isotropy: clusters found, and every one seen from its own mean."""

import numpy as np
import pytest

NAME = "cluster-isotropy"


def planted(number=4, each=120, d=8, apart=12.0):
    rng = np.random.default_rng(2)
    labels = np.repeat(np.arange(number), each)
    rows = rng.normal(size=(len(labels), d)) + apart * rng.normal(size=(number, d))[labels]
    return rows, labels


def slow(rows, labels):
    found = []
    for label in np.unique(labels):
        part = rows[labels == label]
        part = part - part.mean(axis=0)
        units = part / np.linalg.norm(part, axis=1, keepdims=True)
        near = units @ units.T
        found.append(near[~np.eye(len(part), dtype=bool)].mean())
    return np.mean(found)


def test_planted_clusters_are_found_and_recentred(measured):
    rows, labels = planted()
    found = measured(rows, NAME)
    assert found[f"{NAME}-clusters"].value == 4
    assert found[NAME].value == pytest.approx(slow(rows, labels), abs=1e-10)
    assert found[f"{NAME}-silhouette"].value > 0.6
    assert found[NAME].low < found[NAME].value < found[NAME].high


def test_a_ball_is_one_cluster_and_reads_as_the_centred_cosine(measured):
    rows = np.random.default_rng(3).normal(size=(300, 30)) + 5
    found = measured(rows, NAME, "mean-cosine-centred")
    assert found[f"{NAME}-clusters"].value == 1
    assert found[NAME].value == pytest.approx(found["mean-cosine-centred"].value, abs=1e-9)


def test_clusters_explain_a_cone_that_is_one_by_cosine(measured):
    rows, _ = planted(number=3)
    found = measured(rows + 30.0, NAME, "mean-cosine")
    assert found["mean-cosine"].value > 0.5
    assert abs(found[NAME].value) < 0.02


def test_fewer_documents_than_clusters_are_excluded_and_the_rest_continues():
    from isoscope.api import measure

    rows = np.random.default_rng(1).normal(size=(60, 6))
    found = measure(rows, document=np.arange(60) // 5, measures=[NAME, "mean-cosine"])
    assert [each.measure for each in found] == ["mean-cosine"]
    (reason,) = found.left_out
    assert reason.startswith("cluster-isotropy: cluster-isotropy looks for up to 15 clusters")
    assert reason.endswith("needs more documents than that, got 12")


def test_copies_of_one_row_are_no_clusters():
    from isoscope.api import measure
    from isoscope.errors import TooFewRowsError

    with pytest.raises(TooFewRowsError, match="needs more distinct rows than that, got 1"):
        measure(np.ones((50, 4)), measures=[NAME])


VAGUE = np.random.default_rng(4).gamma(0.5, size=(400, 3))  # no clear number of clusters
GRID = np.stack(np.meshgrid(*[np.arange(7.0)] * 3), axis=-1).reshape(-1, 3)  # many ties


TOPICS = planted(number=3, each=300, apart=1.5)[0]  # clusters that run into one another
NAMES = [NAME, f"{NAME}-clusters", f"{NAME}-silhouette"]
CLOUDS = pytest.mark.parametrize(
    "rows", [VAGUE, GRID, TOPICS, planted()[0]], ids=["vague", "grid", "topics", "clear"]
)


def read(rows, document=None):
    from isoscope.api import measure

    return {
        each.measure: each.value for each in measure(rows, document=document, measures=[NAME])
    }


@CLOUDS
@pytest.mark.parametrize("documents", [False, True], ids=["rows", "documents"])
def test_the_order_of_rows_changes_nothing(rows, documents):
    """Within documents as well: documents are told by ids, rows of one by nothing."""
    ids = np.arange(len(rows)) // 7
    before = read(rows, ids if documents else None)
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(rows))
        if documents:
            order = order[np.argsort(ids[order], kind="stable")]
        found = read(rows[order], ids[order] if documents else None)
        for name in NAMES:
            assert found[name] == pytest.approx(before[name], rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "rows", [VAGUE, TOPICS, planted()[0]], ids=["vague", "topics", "clear"]
)
def test_rows_that_are_off_by_rounding_read_alike(rows):
    """A batch of another size moves the states of a model by a part in ten million.

    Not a grid: many clusterings of it are equally good, and rounding decides.
    """
    ids = np.arange(len(rows)) // 7
    before = read(rows, ids)
    for seed in range(3):
        off = np.random.default_rng(seed).normal(size=rows.shape)
        found = read(rows * (1 + 1e-7 * off), ids)
        assert found[f"{NAME}-clusters"] == before[f"{NAME}-clusters"]
        for name in NAMES:
            assert found[name] == pytest.approx(before[name], rel=1e-4, abs=1e-5)
