"""Clusters against scikit-learn, which takes no part at run time."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, silhouette_score

from isoscope.measures.view.clusters import cluster, k_means, silhouette


def blobs(centers, *, seed, spread=1.0, n=400, d=6):
    return make_blobs(n, d, centers=centers, cluster_std=spread, random_state=seed)


def distances(rows):
    return np.linalg.norm(rows[:, None] - rows, axis=2)


@pytest.mark.parametrize("number", [2, 5])
def test_the_silhouette_is_that_of_scikit_learn(number):
    rows, _ = blobs(3, seed=1)
    labels = np.random.default_rng(2).integers(0, number, size=len(rows))
    labels[:number] = np.arange(number)
    expected = silhouette_score(rows, labels)
    assert silhouette(distances(rows), labels) == pytest.approx(expected, abs=1e-10)


def test_a_row_alone_in_its_cluster_counts_as_nothing():
    rows, labels = blobs(2, seed=3)
    labels = labels.copy()
    labels[0] = 2
    expected = silhouette_score(rows, labels)
    assert silhouette(distances(rows), labels) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("number", [2, 4, 9])
def test_k_means_ends_as_tight_as_scikit_learn(number):
    rows, _ = blobs(4, seed=4, spread=2.0)
    *_, labels = k_means(rows, number)
    means = np.array([rows[labels == each].mean(axis=0) for each in range(labels.max() + 1)])
    tight = ((rows - means[labels]) ** 2).sum()
    theirs = KMeans(number, n_init=4, random_state=0).fit(rows).inertia_
    assert tight <= 1.02 * theirs  # both end in a local minimum, not always the same


@pytest.mark.parametrize("number", [2, 3, 7])
def test_planted_clusters_are_found(number):
    rows, labels = blobs(number, seed=5, spread=0.5)
    found, height = cluster(rows)
    assert adjusted_rand_score(labels, found) == pytest.approx(1.0)
    assert height > 0.5


def test_a_ball_is_one_cluster():
    found, height = cluster(np.random.default_rng(6).normal(size=(500, 40)))
    assert not found.any()
    assert height < 0.1
