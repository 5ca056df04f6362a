"""A model of which this process holds a part is refused; a whole one is not."""

import pytest
import torch
from torch import nn

import isoscope as iso
from forks import Fork
from isoscope.capture.model.sharded import refuse_sharded
from isoscope.errors import EngineError


def test_weights_that_fsdp_has_sharded_are_refused(tmp_path):
    # The thread that shards keeps the group in a cache of torch: with it, threads that no fork
    # of the process would survive.
    assert Fork(refuse_what_fsdp_has_sharded, tmp_path).wait(60) == 0


def refuse_what_fsdp_has_sharded(folder):
    """Be a job of one rank."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    dist.init_process_group(
        "gloo", init_method=f"file://{folder / 'store'}", rank=0, world_size=1
    )
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
