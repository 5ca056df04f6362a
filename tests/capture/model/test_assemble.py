"""A folder becomes a whole model."""

import torch

from isoscope.capture.model.assemble import Location, assemble
from isoscope.capture.model.network import Placement


def test_a_folder_becomes_a_model_with_all_that_belongs_to_it(tiny, said):
    cpu = Placement(torch.float32, torch.device("cpu"), None)
    where = Location("shown", tiny("bert"), commit="c")
    loaded = assemble(where, cpu, trust=False, seed=None, say=said)
    assert loaded.name == loaded.identity["model"] == "shown"
    assert loaded.identity["revision"] == "c"
    assert loaded.takes == "text"
    assert loaded.tokenizer("the cat")["input_ids"][-1] == 3
    assert loaded.processor is loaded.pooling is None
    assert type(loaded.model).__name__ == "BertForMaskedLM"
    assert type(loaded.body).__name__ == "BertModel"
    assert said == []
