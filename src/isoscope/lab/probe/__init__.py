"""How well one number of a model's state distinguishes two labels."""

from isoscope.study.experiment import PLACE, Experiment, add

add(
    Experiment(
        "probe",
        """Print how well one dimension distinguishes two labels.

        Every dimension, threshold and direction is tried on one half of the documents; the best
        is tried on the other. Beside its accuracy stands what giving the commoner label always
        would reach.
        """,
        spec_at="isoscope.lab.probe.spec:ProbeSpec",
        where_at=PLACE,
        examples=(
            "isoscope probe models/minilm reviews.jsonl --label stars",
            "isoscope probe models/minilm reviews.jsonl --label stars -s resid.1 --json",
            "isoscope probe models/minilm corpus.txt --label labels.txt --at mean",
        ),
        noun="documents",
        first="loading model",
    ),
)
