"""What a training gave: the loss at every step that was saved, and how it looks."""

from isoscope.dataclass import dataclass
from isoscope.display import (
    Column,
    Field,
    Record,
    RecordLayout,
    Results,
    Table,
    integers,
    non_empty,
    numbers,
    plain,
    texts,
)

SITE = "model"  # of what is read of a model as a whole
LOSS, HELD_OUT = "loss", "held-out-loss"
CSV = ("step", "tokens", "loss", "held_out_loss")


@dataclass(frozen=True)
class TrainedStep(Record):
    """One checkpoint: how far the training was, and how well the model did."""

    step: int
    tokens: int
    loss: float  # of training batches since the last checkpoint; at step 0 of the first batch
    held_out_loss: float


def metrics_csv(steps: list[TrainedStep]) -> str:
    """Return `metrics.csv`; numbers are written so that they come back the same."""
    rows = [",".join(CSV)]
    rows += [f"{e.step},{e.tokens},{e.loss!r},{e.held_out_loss!r}" for e in steps]
    return "\n".join(rows) + "\n"


def step_tables(found: Results[TrainedStep]) -> tuple[Table, ...]:
    """One line per checkpoint."""
    shared = found.shared
    size = (
        f"{shared['parameters']:,} parameters, {shared['inner_parameters']:,} of them outside "
    )
    caption = plain(f"{shared['arch']}, {size}of embeddings, on {shared['data']}")
    columns = (
        Column("step", tuple(f"{each.step}" for each in found)),
        Column("tokens", tuple(f"{each.tokens:,}" for each in found)),
        Column("loss", tuple(f"{each.loss:.4f}" for each in found)),
        Column("held-out loss", tuple(f"{each.held_out_loss:.4f}" for each in found)),
    )
    return (Table(caption, non_empty(columns), tuple(map(plain, found.remarks))),)


STEPS = RecordLayout(
    name="steps",
    tables=step_tables,
    to_dict=TrainedStep.to_dict,
    fields=(
        *texts("arch", "data"),
        *integers("parameters", "inner_parameters"),
        Field("unigram_entropy", "number", optional=True),
        Field("floor", "number", optional=True),
        *integers("step", "tokens"),
        *numbers("loss", "held_out_loss"),
    ),
)
