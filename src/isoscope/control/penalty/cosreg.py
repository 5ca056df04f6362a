"""CosReg: the mean cosine of the last layer as a penalty, as I-STAR compares itself with."""

from isoscope.control.penalty.base import Penalty
from isoscope.control.penalty.hidden import Layers
from isoscope.control.penalty.mean_cosine import CosineScore
from isoscope.control.penalty.schedule import Factor


class CosReg(Penalty):
    """Adds weight * mean cosine of different rows of the last layer to the loss.

    The released code divides the sum of the n (n - 1) cosines by n^2 and includes padding;
    `as_published` divides so too, padding is never counted. It moves the mean of the rows and
    leaves their covariance nearly alone: a low mean cosine is not isotropy.

    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [1.0, 1.0]])
    >>> round(CosReg()(rows).item(), 3), round(CosReg(as_published=True)(rows).item(), 3)
    (0.707, 0.354)
    """

    def __init__(
        self,
        weight: float = 1.0,
        layers: Layers = "last",
        rows: int | None = 2048,
        *,
        as_published: bool = False,
        per_layer: bool = False,
        warmup: int = 0,
        schedule: Factor | None = None,
        accumulate: int = 1,
        seed: int = 0,
        join: bool = True,
    ) -> None:
        super().__init__(
            weight,
            layers,
            rows,
            per_layer=per_layer,
            warmup=warmup,
            schedule=schedule,
            accumulate=accumulate,
            seed=seed,
            join=join,
        )
        self.as_published = as_published

    def _score(self, number: int) -> CosineScore:
        return CosineScore(squared=self.as_published)
