"""One small simulation, run once."""

import pytest

import isoscope as iso


@pytest.fixture(scope="session")
def curvature_run(tmp_path_factory):
    """Return the folder and the results of 12 draws on all manifolds."""
    folder = tmp_path_factory.mktemp("curvature") / "small"
    found = iso.curvature(draws=12, samples=4000, types=200, output=folder)
    return folder, found
