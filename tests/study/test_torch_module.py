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


class Encoder(nn.Module):
    """PyTorch's own encoder, whose fast path skips modules and drops padding."""

    def __init__(self, norm_first=False):
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first)

    def forward(self, rows, padding):
        return self.encoder(rows, src_key_padding_mask=padding)


def padded(lengths, count=6):
    """Return batches of documents of these lengths, and the mask of their padding."""
    generator = torch.Generator().manual_seed(2)
    padding = torch.arange(max(lengths))[None] >= torch.tensor(lengths)[:, None]
    shape = (len(lengths), max(lengths), 8)
    return [torch.randn(shape, generator=generator) + 1 for _ in range(count)], padding


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("tap", ["encoder.layers.0", "encoder.layers.1.linear2", "encoder"])
def test_an_encoder_of_pytorch_reads_as_documents_alone(tap, norm_first):
    module = Encoder(norm_first).eval()
    lengths = [7, 5, 7, 3, 6]
    rows, padding = padded(lengths)
    given = [({"rows": each, "padding": padding}, ~padding) for each in rows]
    found = survey_module(module, given, {"x": tap})
    kept, names = [], []
    hook = module.get_submodule(tap).register_forward_hook(lambda *a: kept.append(a[-1][0]))
    for number, each in enumerate(rows):
        for document, length in enumerate(lengths):  # alone there is no padding
            with torch.no_grad():
                module(each[document : document + 1, :length], None)
            names += [f"document:{number * len(lengths) + document}"] * length
    hook.remove()
    wanted = {r.measure: r.value for r in measure(torch.cat(kept).numpy(), document=names)}
    assert values(found, "x") == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    assert torch.backends.mha.get_fastpath_enabled()


class Bypassing(nn.Module):
    """Calls the forward method of a module, which runs no hooks."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.spare = (nn.Linear(6, 6) for _ in range(3))

    def forward(self, rows):
        return self.second(self.first.forward(rows))


@pytest.mark.parametrize(
    ("taps", "named"),
    [(["first", "second"], "'first'"), (["first", "spare"], "'first', 'spare'")],
)
def test_a_module_that_is_never_called_is_named(taps, named):
    with pytest.raises(SourceError, match=f"got none of {named}") as raised:
        survey_module(Bypassing(), batches(), taps)
    assert raised.value.slug == "module-silent"
    assert "call the module itself" in raised.value.hint


def test_nested_batches_are_refused():
    parts = [torch.randn(4, 6), torch.randn(3, 6)]
    nested = torch.nested.nested_tensor(parts, layout=torch.jagged)
    with pytest.raises(SourceError, match="expected a padded tensor from Linear"):
        survey_module(nn.Sequential(nn.Linear(6, 5)), [nested], ["0"])
