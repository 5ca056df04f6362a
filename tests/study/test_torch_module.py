"""Any torch module is measured at the modules that are named."""

import numpy as np
import pytest
import torch
from torch import nn

import isoscope as iso
from isoscope.api import measure, survey_module
from isoscope.errors import SourceError, UnknownNameError


class Mixer(nn.Module):
    """Two layers over (documents, positions, width)."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(6, 5)  # not more than it is given: no variance is zero
        self.second = nn.Linear(5, 4)

    def forward(self, rows, scale=1.0):
        return self.second(torch.tanh(self.first(rows * scale)))


def batches(count=5, documents=9, positions=7):
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(documents, positions, 6, generator=generator) + 1 for _ in range(count)]


def values(readings, site):
    return {r.measure: r.value for r in readings if r.site == site and r.variant == "all"}


def test_readings_are_those_of_the_stored_rows():
    module = Mixer()
    found = survey_module(module, batches(), {"mid": "first", "out": "second"})
    with torch.inference_mode():
        rows = torch.cat([module.first(each) for each in batches()]).reshape(-1, 5).numpy()
    documents = np.repeat([f"document:{i}" for i in range(45)], 7)
    wanted = {r.measure: r.value for r in measure(rows, document=documents)}
    assert values(found, "mid") == pytest.approx(wanted, rel=1e-5, abs=1e-6)
    assert {r.site for r in found} == {"mid", "out"}


def test_padding_is_excluded():
    mask = torch.ones(9, 7, dtype=torch.bool)
    mask[:, 4:] = False
    whole = survey_module(Mixer(), [(each, mask) for each in batches()], ["first"])
    cut = survey_module(Mixer(), [each[:, :4] for each in batches()], ["first"])
    assert values(whole, "first") == pytest.approx(values(cut, "first"), rel=1e-6)


def test_arguments_may_be_named():
    plain = survey_module(Mixer(), batches(), ["second"])
    named = survey_module(Mixer(), [{"rows": each} for each in batches()], ["second"])
    assert values(plain, "second") == values(named, "second")


def test_it_is_at_the_front_door():
    assert iso.survey_module is survey_module


def test_a_module_that_is_not_there_is_refused():
    with pytest.raises(UnknownNameError, match="no module is called 'fist'"):
        survey_module(Mixer(), batches(), ["fist"])


def test_no_batches_and_masks_that_do_not_fit_are_refused():
    with pytest.raises(SourceError, match="at least one batch"):
        survey_module(Mixer(), [], ["first"])
    with pytest.raises(SourceError, match="expected a mask of 9 x 7"):
        mask = torch.ones(9, 3, dtype=torch.bool)
        survey_module(Mixer(), [(each, mask) for each in batches()], ["first"])
    with pytest.raises(SourceError, match="expected a tensor"):
        survey_module(Mixer(), [("no", "tensor")], ["first"])


@pytest.mark.parametrize("batch", [3, {"rows": 3}, (3, "x"), [None]])
def test_a_batch_without_a_tensor_is_refused(batch):
    with pytest.raises(SourceError, match="expected a tensor in a batch, got none") as raised:
        survey_module(Mixer(), [batch], ["first"])
    assert raised.value.slug == "corpus-kind"
