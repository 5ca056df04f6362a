"""What the norms of a model hold, and what the final one does."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "norm",
        """Print gain and bias of the norms of MODEL, and what they do.

        The norms of gain and bias, r = |bias| / |gain|, and r^2 / (1 + r^2): the mean cosine of
        the output if nothing but the bias were common to it. Then dimensions whose gain or bias
        stands out. With a run, the readings before, between and after the final norm.
        """,
        spec_at="isoscope.lab.norm.spec:NormSpec",
        where_at=PLACE,
        examples=(
            "isoscope norm models/minilm",
            "isoscope norm models/minilm --run runs/minilm",
            "isoscope norm models/minilm --sigmas 2.5 --json",
        ),
        noun="units",
        first="loading model",
        section_at="isoscope.lab.norm.section:SECTION",
    ),
)
