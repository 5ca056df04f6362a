"""The worker of drift: its norms, and a unit for each initialisation."""

import pytest

from isoscope.engine import Notify
from isoscope.errors import ConfigError
from isoscope.lab.drift.spec import DriftSpec
from isoscope.lab.drift.worker import DriftWorker, check_norms


def test_norms_are_in_order_and_each_once():
    assert check_norms(DriftSpec.of(norms=[10.0, 0.0, 10.0, 3.0])) == [0.0, 3.0, 10.0]
    with pytest.raises(ConfigError, match="expected finite numbers as norms"):
        check_norms(DriftSpec.of(norms=[1.0, float("inf")]))


def test_every_initialisation_is_a_unit():
    spec = DriftSpec.of(arch=["bert", "gpt2"], width=24, heads=2, initialisations=3, seed=5)
    (units,) = DriftWorker(spec, Notify(), {}).plan().stages
    assert len(units) == 6
    assert {(unit.arch, unit.seed) for unit in units} == {
        (arch, seed) for arch in ("bert", "gpt2") for seed in (5, 6, 7)
    }
