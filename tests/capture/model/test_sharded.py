"""A model of which this process holds a part is refused; a whole one is not."""

import pytest
import torch
from torch import nn

import isoscope as iso
from isoscope.capture.model.sharded import refuse_sharded
from isoscope.errors import EngineError


@pytest.fixture
def group(tmp_path):
    """Be a job of one rank."""
    import torch.distributed as dist

    store = f"file://{tmp_path / 'store'}"
    dist.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_weights_that_fsdp_has_sharded_are_refused(group):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    module = nn.Sequential(nn.Linear(4, 4))
    refuse_sharded(module)
    fully_shard(module, mesh=init_device_mesh("cpu", (1,)))
    with pytest.raises(EngineError, match=r"sharded over ranks \(DTensor\)") as caught:
        iso.survey_module(module, [torch.ones(2, 4)], taps={"out": "0"})
    assert caught.value.slug == "engine-sharded"
    assert 'device_map="auto"' in str(caught.value)


def test_wrappers_of_others_are_known_by_what_they_leave():
    class FullyShardedDataParallel(nn.Module):
        pass

    with pytest.raises(EngineError, match="FSDP"):
        refuse_sharded(nn.Sequential(FullyShardedDataParallel()))
    module = nn.Linear(2, 2)
    module.weight.ds_id = 3
    with pytest.raises(EngineError, match="DeepSpeed"):
        refuse_sharded(module)
