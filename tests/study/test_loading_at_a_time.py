"""Two models that load at a time: transformers replaces functions of torch while it does so."""

from concurrent.futures import ThreadPoolExecutor

import torch

from isoscope.study.model import load_model


def test_models_loaded_by_several_threads_leave_torch_as_it_was(tiny):
    before = {name: getattr(torch.nn.init, name) for name in ("normal_", "uniform_", "zeros_")}
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: load_model(tiny), range(12)))
    assert {name: getattr(torch.nn.init, name) for name in before} == before
    first, *others = (dict(each.loaded.model.state_dict()) for each in found)
    for other in others:
        assert all(torch.equal(first[name], other[name]) for name in first)
    fresh = torch.nn.Linear(64, 64)
    assert fresh.weight.device.type == "cpu" and 0 < fresh.weight.abs().max() < 1
