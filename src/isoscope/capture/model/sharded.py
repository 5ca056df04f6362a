"""Models whose weights are spread over several processes are refused, with what to do."""

import sys
from typing import TYPE_CHECKING

from isoscope.errors import EngineError

if TYPE_CHECKING:
    from torch import nn


def refuse_sharded(module: "nn.Module") -> None:
    """Raise where this process holds only a part of a model.

    Its activations would have to be gathered from others that may be at another batch.
    """
    how = _sharded_by(module)
    if how:
        raise EngineError(
            f"cannot measure a model that is sharded over ranks ({how})",
            hint="load it whole in one process, which spreads it over all devices with "
            "--device-map=auto; or gather it first, and measure what was saved",
            slug="engine-sharded",
        )


def _sharded_by(module: "nn.Module") -> str:
    """Return what has spread the weights; "" where they are whole.

    Nothing is imported for it: what was never imported has spread nothing.
    """
    tensors = sys.modules.get("torch.distributed.tensor")
    for each in module.parameters():
        spread: object = getattr(each, "placements", ()) if tensors is not None else ()
        if isinstance(spread, tuple) and any("Shard" in type(e).__name__ for e in spread):
            return "DTensor"
        if hasattr(each, "ds_id"):
            return "DeepSpeed ZeRO"
    names = {type(each).__name__ for each in module.modules()}
    return "FSDP" if "FullyShardedDataParallel" in names else ""
