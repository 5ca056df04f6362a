"""Count, mean and scatter of rows, added block by block, and over all processes."""

import torch
from torch import Tensor

from isoscope.accumulate.cellwise import pairwise_weights
from isoscope.control.penalty.row_selection import sum_dtype
from isoscope.control.world import World


class Sums:
    """Count, mean and scatter of rows, added block by block about a running mean."""

    def __init__(self, like: Tensor) -> None:
        d = like.shape[-1]
        # Apple's devices have no float64.
        self.dtype = torch.float32 if like.device.type == "mps" else torch.float64
        self.count = 0
        self.mean = torch.zeros(d, dtype=self.dtype, device=like.device)
        self.scatter = torch.zeros(d, d, dtype=self.dtype, device=like.device)

    def add(self, rows: Tensor) -> None:
        """Add a block; rows that are not finite are left out."""
        block = rows.to(sum_dtype(rows.dtype))
        block = block[block.isfinite().all(dim=1)]
        n = len(block)
        if not n:
            return
        mean = block.mean(dim=0)
        about = block - mean
        self.pool(n, mean.to(self.dtype), (about.T @ about).to(self.dtype))

    def pool(self, count: int, mean: Tensor, scatter: Tensor) -> None:
        """Take in the sums of other rows, of which there is at least one."""
        share, weight = pairwise_weights(self.count, count)
        shift = mean - self.mean
        self.scatter += scatter
        self.scatter += torch.outer(shift, shift) * weight
        self.mean += shift * share
        self.count += count

    def joined(self, world: World) -> tuple[int, Tensor]:
        """Return the count and the scatter about the mean of the rows of all processes."""
        if world.size == 1:
            return self.count, self.scatter
        sums = torch.cat([self.mean * self.count, self.mean.new_tensor([self.count])])
        count = int(world.sum(sums)[-1])
        shift = self.mean - sums[:-1] / max(count, 1)
        scatter = self.scatter + torch.outer(shift, shift) * self.count
        return count, world.sum(scatter)
