"""The processes of a training run, whose batches are one large batch to a penalty."""

from typing import Self, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

from isoscope.dataclass import dataclass

V = TypeVar("V")


@dataclass(frozen=True)
class World:
    """The processes whose batches are one cloud; by default this process alone.

    Every process makes the same calls in the same order whatever its batch holds: the
    others would wait for ever for a process that has no real token and stays away.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def current(cls, joined: bool = True) -> Self:
        """Return the processes of this run if they are to be joined, or this one alone."""
        if not joined or not dist.is_available() or not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over the processes, written into the tensor."""
        if self.size > 1:
            dist.all_reduce(tensor)
        return tensor

    def gather(self, numbers: list[int], device: torch.device) -> list[list[int]]:
        """Return the numbers of every process."""
        if self.size == 1:
            return [numbers]
        table = torch.zeros(self.size, len(numbers), dtype=torch.int64, device=device)
        table[self.rank] = torch.tensor(numbers, device=device)
        return self.sum(table).tolist()

    def gather_objects(self, value: V) -> list[V]:
        """Return the value of every process, by rank; values are pickled."""
        if self.size == 1:
            return [value]
        found: list[V | None] = [None] * self.size
        dist.all_gather_object(found, value)
        return cast(list[V], found)
