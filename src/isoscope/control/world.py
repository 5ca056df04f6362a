"""Sums over all processes of a training run, so that a penalty sees one large batch."""

from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor

V = TypeVar("V")


@dataclass(frozen=True)
class Join:
    """The processes whose batches are one cloud; by itself a process is all there is.

    Every process makes the same calls in the same order whatever its batch holds: a process
    that has no real token and stays away would leave the others waiting for ever.
    """

    rank: int = 0
    size: int = 1
    group: Any = None

    @classmethod
    def found(cls, wanted: bool, group: Any = None) -> "Join":
        """Return the processes of this run, or this one alone."""
        if not wanted or not dist.is_available() or not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(group), dist.get_world_size(group), group)

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over the processes; the tensor is used up."""
        if self.size > 1:
            dist.all_reduce(tensor, group=self.group)
        return tensor

    def each(self, numbers: list[int], device: torch.device) -> list[list[int]]:
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
        dist.all_gather_object(found, value, group=self.group)
        return cast(list[V], found)
