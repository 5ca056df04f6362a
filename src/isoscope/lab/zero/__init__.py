"""What a norm dimension does: the output distribution without it."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "zero",
        """Print how far the output of MODEL moves without one dimension.

        The Kullback-Leibler divergence, in nats per token, of the distribution over tokens when
        gain and bias of one norm dimension are zero, beside random dimensions. Done by hooks:
        the weights are not touched.
        """,
        spec_at="isoscope.lab.zero.spec:ZeroSpec",
        where_at=PLACE,
        examples=(
            "isoscope zero models/gpt2",
            "isoscope zero models/gpt2 corpus.txt --dimension 3 --dimension 11 --json",
            "isoscope zero models/gpt2 corpus.txt --norm 2 --documents 12",
        ),
        noun="passes",
        first="loading model",
    ),
)
