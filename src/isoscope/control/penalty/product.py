"""The one matrix product that spectra of few rows need, in whichever form is smaller."""

import torch
from torch import Tensor

from isoscope.control.processes import World
from isoscope.dataclass import dataclass

_WORTH_CUTTING = 96  # columns; below, a product is over before it is cut


@dataclass(frozen=True)
class Centred:
    """Rows about their common mean, and their squared lengths summed."""

    rows: Tensor  # (k, d)
    count: int  # of all processes
    trace: float  # of the scatter, over all processes
    spread: bool  # whether they differ by more than rounding, within what numbers can hold

    @classmethod
    def of(cls, rows: Tensor, world: World, *, owned: bool = False) -> "Centred":
        """Return rows about the mean of all processes' rows; owned ones may be overwritten."""
        sums = rows.new_empty(rows.shape[1] + 1)
        sums[0] = len(rows)
        torch.sum(rows, dim=0, out=sums[1:])
        world.sum(sums)
        count = int(sums[0])
        mean = sums[1:] / max(count, 1)
        about = rows.sub_(mean) if owned else rows - mean
        trace, offset = torch.stack(
            [world.sum(torch.linalg.vector_norm(about).square()), torch.dot(mean, mean)]
        ).tolist()
        # Identical rows leave the rounding of their mean, and that is no spread.
        rounding = (4 * torch.finfo(rows.dtype).eps) ** 2 * count * offset
        spread = trace > rounding and divisible(trace, rows.dtype)
        return cls(about, count, trace, spread)


def divisible(trace: float, dtype: torch.dtype) -> bool:
    """Whether slopes over a trace are finite: they go with one over it, times width and weight.

    In float32 that is a trace above 1e-24, rows of 1e-14 or so.
    """
    numbers = torch.finfo(dtype)
    return numbers.tiny / numbers.eps**2 < trace < numbers.max


def scatter_of(rows: Tensor, world: World) -> Tensor:
    """Return the sum of y y' over the rows of all processes, (d, d)."""
    return world.sum(symmetric_product(rows))


def symmetric_product(rows: Tensor) -> Tensor:
    """Return Y'Y, (d, d), for rows Y (k, d).

    It is symmetric, and torch has no product that knows this. In three strips from the
    diagonal on it takes two thirds of the work: 95 ms for 139 at 8,192 x 768 on one core.
    """
    d = rows.shape[1]
    if rows.device.type != "cpu" or d < _WORTH_CUTTING:
        return rows.T @ rows
    found = rows.new_empty(d, d)
    strip = -(-d // 3)
    for low in range(0, d, strip):
        high = min(low + strip, d)
        torch.mm(rows[:, low:high].T, rows[:, low:], out=found[low:high, low:])
        found[high:, low:high] = found[low:high, high:].T
    return found


@dataclass(frozen=True)
class Shape:
    """The scatter over its trace, as such or, for few rows, through their dot products."""

    matrix: Tensor  # (d, d) or (k, k)
    through_rows: bool

    @classmethod
    def of(cls, about: Centred, world: World) -> "Shape":
        """Return the shape of centred rows; dot products of rows stay in one process."""
        rows = about.rows
        if world.size == 1 and len(rows) < rows.shape[1]:
            return cls((rows @ rows.T).div_(about.trace), True)
        return cls(scatter_of(rows, world).div_(about.trace), False)

    @property
    def concentration(self) -> float:
        """Its squared length: one over the participation ratio."""
        return float(self.matrix.square().sum())

    def times(self, rows: Tensor, factor: float, less: float) -> Tensor:
        """Return factor (Y W - less Y) for the rows Y it was made of."""
        moved = scale_and_shift(self.matrix, factor, -less * factor)
        return moved @ rows if self.through_rows else rows @ moved


def scale_and_shift(matrix: Tensor, factor: float, more: float) -> Tensor:
    """Return factor times a matrix plus a multiple of the identity.

    Cheaper than adding rows to a product of rows, as a batch has more rows than columns.
    """
    moved = matrix * factor
    moved.diagonal().add_(more)
    return moved
